"""docs/control.md shows requests and their real answers; both are held against the API."""

import json
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.control.address import Address
from lab.control.models import FaultOrder
from lab.control.server import beside
from lab.testbed.netns import open_testbed
from tests.control.fakes import until
from tests.control.unix import ask

TEXT = (Path(__file__).parents[2] / "docs" / "control.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```console\n\$ (curl .*)\n(.*)\n```", TEXT)
ID = "b119bacc"
"""The fault's in the text."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where a client talks and the API is on ``control.sock``, as in ``lab serve``."""
    with tempfile.TemporaryDirectory() as name, open_testbed() as testbed:
        testbed.server.spawn_module("lab.programs.server", ["5000"]).wait_for_line('"listening"', 10)
        path = Path(name, "control.sock")
        with beside(testbed.router, Address(path=path), Path(name)):
            client = testbed.client.spawn_module("lab.programs.client", ["server", "5000"])
            client.wait_for_line('"received"', 10)
            until(lambda: ask(path, "GET", "/healthz")[1]["capture"] == "running")
            time.sleep(1.1)
            yield path.parent


def shape(value: Any) -> Any:
    """The names and the kinds; figures differ from run to run, and so does the number of copies."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value] if value and isinstance(value[0], dict) else "list"
    if isinstance(value, str):
        return re.sub(r"[\d.]+", "N", value)
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_each_answer_shown_is_what_the_request_shown_gets(folder: Path) -> None:
    assert len(SHOWN) == 5
    name = ID
    for command, answer in SHOWN:
        if "verdict" in command:
            until(lambda: ask(folder / "control.sock", "GET", f"/faults/{name}/verdict")[1]["came_back"])  # noqa: B023
        done = subprocess.run(
            shlex.split(command.replace(ID, name)), cwd=folder, capture_output=True, text=True, check=True
        )
        got = json.loads(done.stdout)
        assert shape(got) == shape(json.loads(answer.replace(ID, name if name != ID else got.get("id", ID)))), command
        if "--json" in command:
            name = got["id"]
            time.sleep(1)


def test_every_member_of_an_order_and_every_path_is_explained(folder: Path) -> None:
    _, schema = ask(folder / "control.sock", "GET", "/openapi.json")

    for name in FaultOrder.model_fields:
        assert f"| `{name}` |" in TEXT
    for path in schema["paths"]:
        assert path.replace("{side}", "left") in TEXT
