"""The rings: dependencies point inwards, and each third party has one place."""

import ast
import functools
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab

ROOT = Path(lab.__file__).parent

VALUE_TOOLS = {
    "abc", "bisect", "collections", "dataclasses", "difflib", "enum", "fractions", "functools", "heapq", "itertools",
    "math", "operator", "re", "string", "types", "typing",
}  # fmt: skip
"""What the core may take from the standard library: nothing with a clock, randomness, files or sockets in it."""

OUTWARD_CALLS = {"__import__", "eval", "exec", "input", "open", "print"}
"""Built-in functions that reach out of the core without an import."""

PURE = (
    "live/protocol/", "live/session/", "live/model/", "live/recovery/", "live/timelapse.py",
    "host/machine/", "host/protocol/errors.py", "host/protocol/framing.py", "host/protocol/messages.py",
    "host/protocol/answers.py", "host/protocol/asks.py", "host/protocol/events.py", "host/protocol/values.py",
)  # fmt: skip
"""Beside the core: what takes its instants, its randomness and its octets as arguments."""

CODECS = {"base64", "binascii", "json"}

PROTOCOL_WIRE = ("live/protocol/wire.py", "live/protocol/scalars.py")
"""Make octets of messages and messages of octets."""

INWARDS = {
    "core": {"core"},
    "pcap": {"core", "pcap"},
    "testbed": {"core", "pcap", "testbed"},
    "report": {"core", "pcap", "report"},
    "run": {"core", "pcap", "testbed", "report", "run"},
    "control": {"core", "pcap", "testbed", "control"},
    "testcontainers": {"core", "pcap", "testbed", "control", "testcontainers"},
    "programs": {"core", "programs"},
    "live": {"core", "live", "programs"},
    "host": {"core", "host", "programs"},
    "study": {"core", "pcap", "testbed", "report", "run", "live", "study"},
    "experiments": {"core", "pcap", "testbed", "report", "run", "live", "host", "study", "experiments"},
    "cli": {"core", "pcap", "testbed", "report", "run", "control", "programs", "live", "host", "study", "cli"},
}
"""Each ring, and those that it may import."""

PLACES = {
    "cryptography": ("live/server/certificates.py",),
    "docker": ("testbed/docker/", "testcontainers/"),
    "fastapi": ("control/",),
    "google": (
        "host/protocol/codec.py",
        "host/protocol/schema.py",  # protobuf
        "live/client/google_genai.py",
        "live/client/genai_messages.py",
    ),
    "iptc": ("testbed/firewall_iptables.py",),
    "matplotlib": ("report/", "study/figures.py"),
    "numpy": (),
    "pocketsphinx": ("live/voice/recogniser.py",),
    "prometheus_client": ("control/metrics.py",),
    "pydantic": ("control/", "report/"),
    "pyroute2": ("testbed/",),
    "pytest": ("conftest.py", "experiments/"),
    "requests": ("testbed/docker/engine.py", "testcontainers/http.py"),
    "rich": ("cli/", "report/"),
    "scapy": ("testbed/capture.py", "pcap/fallback.py"),
    "starlette": ("control/",),
    "testcontainers": ("testbed/docker/", "testcontainers/"),
    "typer": ("cli/",),
    "urllib3": ("testbed/docker/engine.py",),
    "uvicorn": ("control/server.py",),
    "websockets": ("host/shell/websocket.py", "live/server/", "live/client/", "live/lifecycle/"),
}
"""Each third party, and the files or folders that may import it."""

MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


@functools.cache
def parse(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"), module)


def imports(tree: ast.AST, module: str = "__init__.py") -> Iterator[str]:
    """Dotted names of all that is imported, at module level or in functions; relative ones made absolute."""
    package = ("lab", *Path(module).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*base, *([node.module] if node.module else [])))
            # ``from lab import core`` imports a ring as well.
            yield from (f"{origin}.{alias.name}" if origin == "lab" else origin for alias in node.names)


def ring_of(module: str) -> str | None:
    """The ring that a file belongs to, None for ``lab/__init__.py`` and ``lab/__main__.py``."""
    return module.split("/")[0] if "/" in module else None


def test_every_folder_is_a_ring_and_every_ring_is_known() -> None:
    assert {ring_of(module) for module in MODULES} - {None} <= set(INWARDS)


def test_dependencies_point_inwards() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in MODULES
        for name in imports(parse(module), module)
        if (ring := ring_of(module)) and name.startswith("lab.") and name != "lab.__version__"
        if name.split(".")[1] not in INWARDS[ring]
    ]

    assert wrong == []


def needs(module: str) -> set[str]:
    """The files of the lab that a file imports, in functions too; importing a package's module needs no package."""
    names: set[str] = set()
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if file_of(name) else node.module for name in whole}
    return {found for name in names if (found := file_of(name))} - {"__init__.py"}


def file_of(dotted: str) -> str | None:
    """The file of a module or package of the lab, None for anything else."""
    path = "/".join(dotted.split(".")[1:])
    found = [name for name in (f"{path}.py", f"{path}/__init__.py") if dotted.startswith("lab.") and name in MODULES]
    return found[0] if found else None


def test_no_module_needs_itself_in_a_circle() -> None:
    order = list(graphlib.TopologicalSorter({module: needs(module) for module in MODULES}).static_order())

    assert order.index("core/flow.py") < order.index("run/runner.py") < order.index("api.py")


def is_pure(module: str) -> bool:
    return ring_of(module) == "core" or module.startswith(PURE)


def test_the_core_takes_values_and_gives_values() -> None:
    pure = [module for module in MODULES if is_pure(module)]
    wrong = [
        f"{module} imports {name}"
        for module in pure
        for name in imports(parse(module), module)
        if name.split(".")[0] not in VALUE_TOOLS | {"lab"} | (CODECS if module in PROTOCOL_WIRE else set())
        or (
            name.startswith("lab.")
            and name.split(".")[1] in {"host", "live"}
            and not (file_of(name) or "").startswith(PURE)
        )
    ]
    wrong += [
        f"{module} calls {node.func.id}"
        for module in pure
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OUTWARD_CALLS
    ]

    assert len(pure) > 5
    assert wrong == []


def test_each_third_party_has_its_place() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in MODULES
        for name in {name.split(".")[0] for name in imports(parse(module), module)}
        if name not in sys.stdlib_module_names | {"lab"} and not module.startswith(PLACES.get(name, ()))
    ]

    assert wrong == [], "a new dependency needs its place in PLACES"


def test_commands_are_never_shell_strings() -> None:
    wrong = [
        f"{module}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(parse(module))
        if (isinstance(node, ast.Call) and "shell" in {keyword.arg for keyword in node.keywords})
        or (isinstance(node, ast.Attribute) and node.attr in {"system", "popen"} and ast.unparse(node.value) == "os")
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import scapy.all", {"scapy.all"}),
        ("def late():\n    from iptc import Chain", {"iptc"}),
        ("from lab import run", {"lab.run"}),
        ("from lab.core.flow import Endpoint", {"lab.core.flow"}),
        ("from ..run import spec", {"lab.run"}),
        ("from . import flow", {"lab.core"}),
        ("from .. import run", {"lab.run"}),
    ],
)
def test_no_form_of_import_is_overlooked(source: str, expected: set[str]) -> None:
    assert set(imports(ast.parse(source), "core/segment.py")) == expected
