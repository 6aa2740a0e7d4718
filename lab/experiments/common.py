"""What the experiments have in common: the lab's own programs, and words for who sends when."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.core.giveup_probe import WindowProbeTimer, window_probe_timer
from lab.core.kernel import LINUX_DEFAULTS
from lab.core.prediction import Situation, State
from lab.core.profiles import PROFILES
from lab.report.record import Outcome, Record
from lab.run.checks import DISTURBABLE
from lab.run.spec import Action, Program, RunSpec

PORT = 5000
CLIENT_PORT = 40000
"""Where the client must be known before it connects."""

FAST = PROFILES["fast"]
LINUX = PROFILES["linux"]

PROMPT_S = 0.1
"""What a write that is sent at once may take on a busy machine, from the run's order to the wire."""

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


def each_in_both(specs: Mapping[str, RunSpec]) -> list[Any]:
    """Experiments by name, each over IPv4 and over IPv6, as test parameters."""
    return [param for name, spec in specs.items() for param in both_families(replace(spec, name=name), name)]


def next_copy(record: Record) -> tuple[float, float]:
    """When the first copy after the heal was predicted to leave."""
    sending = record.prediction.client.sending
    assert sending is not None
    return next(window for window in sending.copy_windows_s if window[1] > (record.fault.healed_s or 0))


def probe_timer(record: Record) -> WindowProbeTimer:
    """The rule of the client's probes, as after its RTO at the cut."""
    settings = replace(LINUX_DEFAULTS, hz=record.settings.hz or LINUX_DEFAULTS.hz)
    situation = Situation(state=State.ZERO_WINDOW, settings=settings, rto_s=record.sockets.client.rto_s)
    return window_probe_timer(situation)


def heard(at: float, window: tuple[float, float]) -> bool:
    """Whether what a program heard at this instant left in the window: it may be ``PROMPT_S`` later."""
    return window[0] <= at <= window[1] + PROMPT_S


def invalid_by_design(record: Record) -> bool:
    """Whether a run with its hole in a sender's own OUTPUT failed at what no capture sees there, and at no other proof.

    What is predicted of the ends is predicted for a hole in a router. What a busy machine can spoil is passed over:
    such a run is not done again.
    """
    passed_over = ("client-", "server-")
    failed = [check.name for check in record.checks if not check.ok and not check.name.endswith(DISTURBABLE)]
    wrong = [name for name in failed if not name.startswith(passed_over)]
    return record.outcome is Outcome.INVALID and wrong == ["rule-equals-capture-forward"]


def within(at: float, window: tuple[float, float], slack: float = 0.01) -> bool:
    """Whether the instant lies in the window, give or take what a capture's stamp may be off by."""
    return window[0] - slack <= at <= window[1] + slack
