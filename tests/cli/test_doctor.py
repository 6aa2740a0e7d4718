"""lab doctor: every requirement with its fix, for people and for scripts."""

import json
from collections.abc import Sequence

import pytest
from typer.testing import CliRunner, Result

from lab.cli.app import app
from lab.testbed import preflight
from lab.testbed.docker import readiness
from lab.testbed.requirement import Requirement, Status, optional

WELL = Requirement("user namespaces", Status.OK, True, "its own")
FORBIDDEN = Requirement("NET_RAW", Status.RESTRICTED, True, "Operation not permitted", "sudo setcap cap_net_raw+ep it")
ABSENT = optional("tshark", ok=False, seen="not found " * 12, fix="sudo apt-get install tshark")


ENGINE = optional(readiness.ENGINE, ok=True, seen="20.10.24", fix="")
IMAGE = optional(readiness.IMAGE, ok=True, seen="blackhole-lab/lab:0", fix="")
NO_ENGINE = optional(readiness.ENGINE, ok=False, seen="no socket", fix="sudo apt-get install docker.io")


def doctor(
    monkeypatch: pytest.MonkeyPatch,
    found: list[Requirement],
    *options: str,
    containers: Sequence[Requirement] = (NO_ENGINE,),
) -> Result:
    monkeypatch.setattr(preflight, "inspect", lambda: found)
    monkeypatch.setattr(readiness, "inspect", lambda: list(containers))
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
    assert result.stdout.splitlines()[-1] == "The embedded testbed is not ready; to mend: NET_RAW."


def test_containers_alone_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctor(monkeypatch, [WELL, FORBIDDEN], containers=(ENGINE, IMAGE))

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "Ready: containers can be had (--backend docker)."


def test_an_engine_without_the_image_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = optional(readiness.IMAGE, ok=False, seen="not there", fix="lab image build")
    result = doctor(monkeypatch, [WELL, FORBIDDEN], "--json", containers=(ENGINE, lacking))

    assert result.exit_code == 5
    assert json.loads(result.stdout)["backends"] == {"netns": False, "docker": False}


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
