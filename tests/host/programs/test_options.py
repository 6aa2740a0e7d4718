"""What the command line takes and refuses."""

import re

import pytest

from lab.host.programs.main import main
from lab.host.programs.options import parser


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("job --port 99999", "argument --port: 99999 is no port. Fix: give 0 to 65535"),
        ("job --port -1", "argument --port: -1 is no port"),
        ("simulator 127.0.0.1 http", "argument port: http is no port"),
        ("relay --remote-port 65536", "argument --remote-port: 65536 is no port"),
        ("simulator 127.0.0.1 1 --watch 0 -1", "argument --watch: 0 is no time at all. Fix: give more than 0"),
        ("simulator 127.0.0.1 1 --watch 1 -1", "argument --watch: Expected a duration, got '-1'."),
        ("simulator 127.0.0.1 1 --watch 1", "argument --watch: expected 2 arguments"),
        ("simulator 127.0.0.1 1 --timeout -3", "argument --timeout: Expected a duration, got '-3'."),
        ("simulator 127.0.0.1 1 --timeout nan", "argument --timeout: Expected a duration, got 'nan'."),
        ("simulator 127.0.0.1 1 --close-timeout 0", "argument --close-timeout: 0 is no time at all."),
        ("job --session-end-timeout soon", "argument --session-end-timeout: Expected a duration"),
        ("job --judging -1", "argument --judging: Expected a duration"),
        ("job --end-after -1", "argument --end-after: Expected a duration"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    line: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_durations_are_those_of_the_lab() -> None:
    given = parser().parse_args(["simulator", "h", "1", "--timeout", "500ms", "--watch", "0.5", "2s"])
    assert (given.timeout, given.watch) == (0.5, [0.5, 2.0])


@pytest.mark.parametrize("line", ["--websocket job", "job --websocket", "simulator h 1 --websocket"])
def test_the_carrier_may_stand_before_the_role_or_behind_it(line: str) -> None:
    assert parser().parse_args(line.split()).websocket is True


@pytest.mark.parametrize("role", ["job", "relay"])
def test_who_listens_is_told_by_one_name_where(role: str) -> None:
    assert parser().parse_args([role, "--host", "0.0.0.0"]).host == "0.0.0.0"


def test_without_it_the_carrier_is_framed_tcp() -> None:
    assert parser().parse_args(["job"]).websocket is False


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("job", ["default 127.0.0.1", "default 8770", "default 60", "default repaired"]),
        ("simulator", ["default 60", "default 'book it' and 'goodbye'", "after so much silence"]),
        ("relay", ["default 127.0.0.1", "default 8770", "default 8771", "exit code: 0", "130 interrupted"]),
    ],
)
def test_the_help_has_the_defaults(role: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([role, "--help"])
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert [words for words in said if words not in shown] == []
