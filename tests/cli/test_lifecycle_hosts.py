"""One line stands for rows that fare alike, and for nothing else: the slowest time and any wrongness show in it."""

import io
from dataclasses import replace

from rich.console import Console

from lab.cli.lifecycle_hosts import grid
from lab.host.tables import Row
from tests.cli.scenes import EVERY_HOST, HOSTS, host


def drawn(rows: list[Row]) -> list[str]:
    out = Console(file=io.StringIO(), width=80, force_terminal=False, markup=False, highlight=False)
    out.print(grid(rows))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()[2:]


def test_a_case_has_a_line_for_each_variant_by_the_name_that_tables_give_it() -> None:
    assert drawn(EVERY_HOST) == [
        "ended by participant_disconnected",
        "  repaired              both  PARTICIPANT_DISCONNECTED  0.01 s",
        "! livekit-agents 1.8.9  ws    not told                  0.01 s",
        "2 requests before any session",
        "  repaired              both  no active session         0.01 s",
        "the user's code fails",
        "  repaired              tcp   failed",
    ]


def test_of_requests_that_fare_alike_the_slowest_is_told() -> None:
    slow = replace(HOSTS[0], after_s=0.25)

    assert drawn([*HOSTS[1:], slow])[1] == "  repaired  both  no active session  0.25 s"


def test_one_that_is_wrong_marks_the_line() -> None:
    wrong = replace(HOSTS[0], right=False)

    assert drawn([*HOSTS[1:], wrong])[1].startswith("! repaired")


def test_what_was_told_otherwise_has_a_line_of_its_own() -> None:
    other = replace(HOSTS[0], seen="timed out")

    assert drawn([*HOSTS[1:], other]) == [
        "2 requests before any session",
        "  repaired  both  no active session  0.01 s",
        "Ping before any session",
        "  repaired  tcp   timed out          0.01 s",
    ]


def test_a_variant_that_tables_do_not_know_keeps_its_name() -> None:
    assert drawn([host("Ping before any session", "mine", "tcp", right=True)])[1].split()[0] == "mine"
