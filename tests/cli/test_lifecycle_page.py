"""What docs/lifecycle.md says of ``lab live lifecycle`` is what the command prints."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.cli.lifecycle_legends import TAKES
from lab.cli.lifecycle_tables import verdict
from lab.cli.live_lifecycle import as_json
from tests.cli.scenes import EVERY_HOST, TABLES, text

PAGE = (Path(__file__).parents[2] / "docs/lifecycle.md").read_text(encoding="utf-8")
(EXCERPT,) = re.findall(r"```text\n\$ lab live lifecycle\n(.*?)```", PAGE, re.DOTALL)
KEYS = PAGE.split("### The JSON")[1].split("\n## ")[0]


def alike(lines: str) -> list[str]:
    """Lines without their figures, the length of their bars, and the width of their columns."""
    return [
        " ".join(re.sub(r"\d[\d.]*", "N", re.sub(r"=*([x>])(?= )", r"=\1", line)).split())
        for line in lines.splitlines()
    ]


def test_the_excerpt_is_of_lines_that_the_command_prints_in_their_order() -> None:
    printed = iter(alike(text(TABLES, EVERY_HOST, 80)) + alike(verdict(TABLES, EVERY_HOST, [])))
    shown = [line for line in alike(EXCERPT) if line not in {"", "..."} and not line.startswith("──")]

    assert [line for line in shown if line not in printed] == []
    assert len(shown) > 20
    assert all(len(line) <= 80 for line in EXCERPT.splitlines())


def test_how_long_it_takes_is_said_once_and_alike() -> None:
    helped = CliRunner().invoke(app, ["live", "lifecycle", "--help"]).output

    assert TAKES in " ".join(helped.split())
    assert f"It takes {TAKES}" in " ".join(PAGE.split())


@pytest.mark.parametrize("table", [*TABLES.as_json(), "host"])
def test_every_key_of_a_row_is_explained(table: str) -> None:
    (row,) = as_json(TABLES, EVERY_HOST)[table][:1]
    (said,) = [line for line in KEYS.splitlines() if line.startswith(f"| `{table}` |")]
    named = set(re.findall(r"`(\w+)`", said)) | {"ok", "as_predicted"}

    assert set(row) - named == set()


def test_every_key_of_the_whole_is_explained() -> None:
    assert set(as_json(TABLES, EVERY_HOST)) - set(re.findall(r"`(\w+)`", KEYS)) == set()
    assert "| `ok` |" in KEYS
    assert "| `as_predicted` |" in KEYS
