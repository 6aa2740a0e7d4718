"""The captures with known faults, which are kept beside the repository and never in it."""

import os
from pathlib import Path
from typing import Any

import pytest

from lab.pcap import Capture
from lab.pcap.flows import read_flows
from lab.report.explanation import as_object

FOLDER = Path(os.environ.get("BLACKHOLE_LAB_PCAPS", Path(__file__).parents[3] / "shared" / "pcaps"))


def capture(name: str) -> Path:
    """The path of a shared capture; skips the test where it is missing."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not there: put the shared captures into {FOLDER}, or name them in BLACKHOLE_LAB_PCAPS")
    return path


def flows(name: str) -> list[dict[str, Any]]:
    """What ``lab explain --json`` says of the flows of a shared capture."""
    found: list[dict[str, Any]] = as_object(read_flows(Capture(capture(name))))["flows"]
    return found
