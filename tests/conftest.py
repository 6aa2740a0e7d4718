"""What all tests share: hypothesis without a stop-watch, and marks by place.

``make test`` runs the tests that make containers apart from those that compare the host with itself, and leaves those
that need clients of others to ``make conformance``.
"""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no defect of what is tested: one example that takes 0.4 s beside five others' tests fails nothing.
settings.register_profile("lab", settings(), deadline=None)
settings.load_profile("lab")

# What a script has in the background ignores interrupts, and so do its programs; tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent

CONTAINERS = (
    "containers/",
    "repro/test_node.py",
    "robustness/test_docker_kills.py",
    "run/test_container_runs.py",
    "run/test_uplink.py",
    "study/test_container_session.py",
    "testbed/docker/",
    "testcontainers/",
)
"""Where those are."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by place, so that no test of a folder can forget it."""
    for item in items:
        if item.path.is_relative_to(HERE / "conformance"):
            item.add_marker("conformance")
        if item.path.is_relative_to(HERE) and str(item.path.relative_to(HERE)).startswith(CONTAINERS):
            item.add_marker("containers")
