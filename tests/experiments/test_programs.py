"""What programs said, from the logs of a run."""

import json
from pathlib import Path

import pytest

from lab.experiments.programs import lines, orphans, said, states

CUT_AT = 100.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that was cut at 100 s."""
    entries = [
        (99.0, "client", "socket-sample", {"state": "ESTABLISHED"}),
        (CUT_AT, "router", "cut", {}),
        (102.0, "client", "socket-sample", {"state": "FIN_WAIT1"}),
        (102.2, "client", "socket-sample", {"state": "FIN_WAIT1", "orphan": True}),
        (102.5, "server", "socket-sample", {"state": "ESTABLISHED"}),
    ]
    (tmp_path / "timeline.jsonl").write_text(
        "".join(
            json.dumps({"at": at, "t_s": at - CUT_AT, "source": source, "kind": kind, "detail": detail}) + "\n"
            for at, source, kind, detail in entries
        )
    )
    (tmp_path / "client.log").write_text(
        '99.5 stdout {"at": 99.4, "event": "told", "name": "a"}\n'
        "101.0 stderr something else\n"
        '101.5 stdout {"at": 101.25, "event": "told", "name": "b"}\n'
        '102.5 stdout {"event": "told", "name": "of another program"}\n'
    )
    return tmp_path


def test_events_are_told_from_the_cut_and_by_what_else_they_say(folder: Path) -> None:
    assert said(folder, "client", "told") == pytest.approx([-0.6, 1.25, 2.5])
    assert [one["name"] for one in lines(folder, "client", "told", name="b")] == ["b"]
    assert said(folder, "client", "ended") == []


def test_states_are_those_of_one_end_after_the_cut(folder: Path) -> None:
    assert states(folder) == [(2.0, "FIN_WAIT1"), (pytest.approx(2.2), "FIN_WAIT1")]


def test_an_orphan_is_a_socket_that_was_seen_without_its_program(folder: Path) -> None:
    assert orphans(folder) == pytest.approx([2.2])
    assert orphans(folder, "server") == []
