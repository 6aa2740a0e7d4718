"""What the experiments have in common: the lab's own programs, and words for who sends when."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.core.profiles import PROFILES
from lab.run.spec import Action, Program, RunSpec

PORT = 5000
CLIENT_PORT = 40000
"""Where the client must be known before it connects."""

FAST = PROFILES["fast"]
LINUX = PROFILES["linux"]

SERVER, CLIENT = "lab.programs.server", "lab.programs.client"


def server(*options: str) -> Program:
    """An echo server."""
    return Program((str(PORT), *options), SERVER)


def client(*options: str) -> Program:
    """A client that sends a line every quarter of a second."""
    return Program(("server", str(PORT), *options), CLIENT)


def quiet_client(*options: str) -> Program:
    """A client that exchanges three lines and then waits to be told."""
    return client("--idle-after", "3", *options)


def sysctls(
    client: Mapping[str, object] | None = None, server: Mapping[str, object] | None = None
) -> dict[str, dict[str, str]]:
    """Settings of TCP per node, without the prefix: ``retries2=5``."""
    return {
        node: {f"net.ipv4.tcp_{name}": str(value) for name, value in (values or {}).items()}
        for node, values in (("client", client), ("server", server))
    }


def one_send(**changes: object) -> RunSpec:
    """An idle flow goes dark and the client sends one line into the hole: the plainest of all losses."""
    fields: dict[str, object] = {
        "server": server(),
        "client": quiet_client(),
        "port": PORT,
        "profile": FAST,
        "actions": (Action(0.05, "client", "send"),),
        "writes_on": False,
        **changes,
    }
    return RunSpec(**fields)  # type: ignore[arg-type]  # names and types are RunSpec's own


def both_families(spec: RunSpec, label: str = "") -> list[Any]:
    """The same experiment over IPv4 and over IPv6, as test parameters."""
    return [
        pytest.param(replace(spec, ipv6=ipv6), id="-".join(filter(None, (label, "ipv6" if ipv6 else "ipv4"))))
        for ipv6 in (False, True)
    ]


def each(specs: Mapping[str, RunSpec]) -> list[Any]:
    """Experiments by name, as test parameters."""
    return [pytest.param(replace(spec, name=name), id=name) for name, spec in specs.items()]
