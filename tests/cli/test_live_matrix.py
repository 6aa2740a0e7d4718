import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cli.live_matrix import DONE, INVALID, REFUTED, exit_code, progress_line
from lab.study.judgement import Row, Session, judge_row
from lab.study.matrix import Progress
from lab.study.results import Results
from lab.study.scenarios import SCENARIOS, find
from tests.study.streams import b1, br1


def row(name: str, *sessions: Session) -> Row:
    return judge_row(find(name), sessions, real=False)


GOOD = row("BR1", br1().session("BR1"))
WRONG = row("BR1", br1(count=2).session("BR1"))
UNPROVEN = row("B1", b1().session("B1", 0), b1(told=True).session("B1", 1))


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([GOOD], DONE),
        ([GOOD, WRONG], REFUTED),
        ([GOOD, UNPROVEN], INVALID),
        ([UNPROVEN, WRONG], REFUTED),
        ([row("B1", b1(told=True).session("B1"))], INVALID),
        ([row("BR1", br1(count=2).session("BR1", 0), dataclasses.replace(br1().session("BR1", 1), invalid=("x",)))],
         REFUTED),
    ],
)  # fmt: skip
def test_the_exit_code_tells_what_is_wrong_from_what_is_not_proven(rows: list[Row], code: int) -> None:
    assert exit_code(rows) == code


def test_progress_says_how_far_it_is_and_what_just_ended() -> None:
    session = br1().session("BR1", 2, took_s=25.31)

    assert progress_line(Progress(3, 43, 0, session)) == "3 of 43 sessions: BR1 session 3 in 25.3 s"
    unproven = dataclasses.replace(session, invalid=("the bystander noticed",))
    assert (
        progress_line(Progress(4, 43, 2, unproven)) == "4 of 43 sessions, 2 run again: BR1 session 3 INVALID in 25.3 s"
    )


def lab(*argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lab", *argv], capture_output=True, text=True, timeout=120, check=False
    )


def test_without_a_name_the_scenarios_are_listed() -> None:
    done = lab("live", "run")

    assert done.returncode == 0
    assert all(name in done.stdout for name in SCENARIOS)


def test_a_scenario_that_there_is_not_gets_the_nearest_before_anything_starts() -> None:
    done = lab("live", "run", "BR4")

    assert done.returncode == 2
    assert "did you mean" in done.stderr
    assert lab("live", "study", "--only", "Q7").returncode == 2


def test_one_session_is_run_and_its_row_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    done = lab("live", "run", "P1", "--json", "--out", f"{tmp_path}/run")
    if done.returncode == 5:
        pytest.skip(done.stderr)

    shown = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (shown["scenario"], shown["n"], shown["in_range"], shown["double_bookings"]) == ("P1", 1, True, 0)
    assert "1 of 1 sessions: P1 session 1" in done.stderr


def test_results_that_were_kept_are_judged_again_without_running_anything(tmp_path: Path) -> None:
    for name, real in (("lapsed", False), ("real", True)):
        Results(tmp_path / name / "results").add(br1().session("BR1", real=real))
    done = lab(
        "live", "study", "--from", f"{tmp_path}/lapsed", "--from", f"{tmp_path}/real", "--out", f"{tmp_path}/all"
    )

    assert done.returncode == 0, done.stderr
    assert "2 sessions. Everything is in" in done.stdout
    page = (tmp_path / "all" / "FINDINGS.md").read_text()
    assert "2 sessions on" in page
    assert "real or lapsed, as each row says" in page
    assert lab("live", "study", "--from", f"{tmp_path}/nothing").returncode == 2


def test_results_that_show_nothing_are_no_proof_of_anything(tmp_path: Path) -> None:
    """None of these may end with 0, which says that everything is as modelled."""
    session = br1().session("BR1")
    (tmp_path / "empty" / "results").mkdir(parents=True)
    Results(tmp_path / "one" / "results").add(session)
    Results(tmp_path / "later" / "results").add(dataclasses.replace(session, scenario="BR9"))
    one = f"{tmp_path}/one"

    for said, *argv in (
        ("hold no session", "--from", f"{tmp_path}/empty"),
        ("hold no session", "--from", one, "--only", "R1"),
        ("There is no scenario 'BR9'", "--from", f"{tmp_path}/later"),
        ("is named twice", "--from", one, "--from", f"{one}/../one"),
    ):
        done = lab("live", "study", *argv, "--out", f"{tmp_path}/out")
        assert (done.returncode, (tmp_path / "out").exists()) == (2, False), done.stderr
        assert said in " ".join(done.stderr.split())


def test_without_a_recogniser_nobody_speaks_and_nothing_is_refuted(tmp_path: Path) -> None:
    hidden = tmp_path / "pocketsphinx"
    hidden.mkdir()
    (hidden / "__init__.py").write_text('raise ImportError("hidden")')
    paths = [str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    command = [sys.executable, "-m", "lab", "live", "run", "P3", "--backend", "netns", "--out", f"{tmp_path}/out"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)

    assert (done.returncode, (tmp_path / "out").exists()) == (5, False), done.stderr
