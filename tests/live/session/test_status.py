"""What a status page gets: enough to find a leaked session, too little to take it over."""

import dataclasses
import json

from lab.live.session.profile import DEFAULT
from lab.live.session.status import SHOWN
from tests.live.session.playbook import Stage

LONG_HANDLE = "0123456789abcdef0123456789abcdef0123"


def test_a_handle_is_shown_by_its_beginning_alone() -> None:
    stage = Stage()
    stage.house._token = lambda: LONG_HANDLE
    for line in ("open 1", "setup 1"):
        stage.do(line)
    stage.until(1)
    for line in ("open 2", f"setup 2 {LONG_HANDLE}"):
        stage.do(line)

    shown = json.dumps([dataclasses.asdict(stage.house.status(now=1)), *(dict(note.fields) for note in stage.notes)])
    assert LONG_HANDLE[:SHOWN] in shown
    assert LONG_HANDLE[: SHOWN + 1] not in shown


def test_a_lost_session_is_counted_and_shows_when_its_server_will_end_it() -> None:
    stage = Stage(DEFAULT.with_(concurrent_limit=3))
    for line in ("open 1", "setup 1"):
        stage.do(line)
    stage.until(10)
    stage.do("gone 1 TCP timeout")
    (found,) = stage.house.status(now=100).sessions

    assert stage.house.status(now=100).counted == 1
    assert (found.state, found.locked, found.connection, found.in_state_s) == ("held", True, None, 90)
    assert found.closes_in_s == 0.25 + 480 - 100


def test_refusals_are_counted_by_cause_and_every_cause_is_there() -> None:
    stage = Stage()
    for line in ("open 1", "setup 1 nobody", "open 2", "setup 2 nobody"):
        stage.do(line)

    refused = stage.house.status(now=0).refused
    assert refused == {"attached": 0, "held": 0, "settling": 0, "dead": 0, "unknown": 2, "limit": 0}


def test_sessions_that_are_over_are_shown_still_and_not_for_ever() -> None:
    stage = Stage()
    for number in range(150):
        for line in (f"open {number}", f"setup {number} no", f"gone {number} FIN"):
            stage.do(line)

    sessions = stage.house.status(now=0).sessions
    assert len(sessions) == 100
    assert {found.state for found in sessions} == {"ended"}
    assert sessions[-1].id == "session-150"
