import xml.etree.ElementTree as ET

from lab.study.figures import render
from lab.study.judgement import Row, judge_row
from lab.study.scenarios import find
from tests.study.streams import b1, br1, r1

PNG = b"\x89PNG\r\n\x1a\n"
ROWS: list[Row] = [
    judge_row(find("R1"), [r1(k).session("R1", k) for k in range(4)], real=False),
    judge_row(find("B1"), [b1().session("B1")], real=False),
    judge_row(find("BR1"), [br1().session("BR1", k) for k in range(3)], real=False),
]


def test_a_study_has_a_figure_of_the_lockout_and_one_of_the_recovery() -> None:
    files = render(ROWS)

    assert sorted(files) == ["lockout.png", "lockout.svg", "recovery.png", "recovery.svg"]
    assert all(files[name].startswith(PNG) for name in files if name.endswith(".png"))
    assert all(ET.fromstring(files[name]).tag.endswith("svg") for name in files if name.endswith(".svg"))


def test_the_same_rows_give_the_same_bytes() -> None:
    assert render(ROWS) == render(ROWS)


def test_what_has_no_recovery_gets_no_figure_of_one() -> None:
    assert sorted(render(ROWS[:1])) == ["lockout.png", "lockout.svg"]
    assert render([]) == {}
