"""Cases of a host without a session; all of them: ``lab/experiments/test_host_tables.py``."""

import pytest

from lab.host.machine.host import NO_SESSION
from lab.host.machine.variant import REPAIRED, VARIANTS
from lab.host.tables.stage import TCP, WEBSOCKET
from lab.host.tables.without_session import AFTER, ASKS, BEFORE, asked, elsewhere
from tests.host.tables.cases import HASTY, deaf_host, done

KEPT = VARIANTS["closed session kept"]


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_the_repaired_host_answers_each_request(when: str) -> None:
    rows = done(asked(WEBSOCKET, REPAIRED, when))

    assert [(row.as_predicted, row.seen) for row in rows] == [(True, NO_SESSION)] * len(ASKS)


def test_dropped_requests_wait_out_their_time_outs() -> None:
    rows = done(asked(HASTY, VARIANTS["requests dropped"], BEFORE))

    assert {(row.as_predicted, row.right, row.seen) for row in rows} == {(True, False, "timed out")}


def test_a_closed_session_that_is_kept_answers_for_itself() -> None:
    seen = {row.case.split()[0]: row.seen for row in done(asked(TCP, KEPT, AFTER)) if row.as_predicted}

    assert len(seen) == len(ASKS)
    assert seen["GetSessionState"] == "answered by the closed session: state 0"


def test_a_host_that_does_nothing_at_all_has_not_that_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    deaf_host(monkeypatch)

    assert {(row.right, row.as_predicted) for row in done(asked(HASTY, KEPT, AFTER))} == {(False, False)}


def test_a_session_in_another_room_has_a_host_of_its_own() -> None:
    assert done(elsewhere(TCP)).as_predicted
