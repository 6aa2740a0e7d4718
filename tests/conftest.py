"""Marks tests by their place: ``make test`` runs those that make containers apart from those that compare the host with
itself, and leaves those that need clients of others to ``make conformance``.
"""

from pathlib import Path

import pytest

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
