"""lab doctor: every requirement with its fix, for people and for scripts."""

import json

import pytest
from typer.testing import CliRunner, Result

from lab.cli.app import app
from lab.testbed import preflight
from lab.testbed.requirement import Requirement, Status, optional

WELL = Requirement("user namespaces", Status.OK, True, "its own")
FORBIDDEN = Requirement("NET_RAW", Status.RESTRICTED, True, "Operation not permitted", "sudo setcap cap_net_raw+ep it")
ABSENT = optional("tshark", ok=False, seen="not found " * 12, fix="sudo apt-get install tshark")


def doctor(monkeypatch: pytest.MonkeyPatch, found: list[Requirement], *options: str) -> Result:
    monkeypatch.setattr(preflight, "inspect", lambda: found)
    return CliRunner().invoke(app, ["doctor", *options])


def test_a_machine_that_lacks_only_the_optional_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctor(monkeypatch, [WELL, ABSENT])

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "ok          user namespaces          its own"
    assert "    fix: sudo apt-get install tshark\n" in result.stdout
    assert "Ready: the embedded testbed can run." in result.stdout


def test_a_restriction_that_blocks_exits_with_5_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctor(monkeypatch, [WELL, FORBIDDEN, ABSENT])

    assert result.exit_code == 5
    assert "restricted  NET_RAW                  Operation not permitted" in result.stdout
    assert result.stdout.splitlines()[-1] == "Not ready; to mend: NET_RAW."


def test_the_output_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctor(monkeypatch, [WELL, FORBIDDEN, ABSENT])

    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(("found", "ready", "code"), [([WELL, ABSENT], True, 0), ([WELL, FORBIDDEN], False, 5)])
def test_json_is_one_object_with_the_same_verdict(
    monkeypatch: pytest.MonkeyPatch, found: list[Requirement], ready: bool, code: int
) -> None:
    result = doctor(monkeypatch, found, "--json")

    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["ready"], result.stderr) == (code, ready, "")
    assert shown["versions"]["lab"]
    assert shown["requirements"][1] == {
        "name": found[1].name,
        "status": found[1].status.value,
        "required": found[1].required,
        "seen": found[1].seen,
        "fix": found[1].fix,
    }


def test_this_machine_is_judged_for_real() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])

    shown = json.loads(result.stdout)
    assert result.exit_code == (0 if shown["ready"] else 5)
    assert {"user namespaces", "legacy tables", "timer frequency"} <= {one["name"] for one in shown["requirements"]}
