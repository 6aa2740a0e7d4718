"""Cases of how a session's end is told; all of them: ``lab/experiments/test_host_tables.py``."""

import pytest

from lab.host.machine.host import HostMachine
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.variant import REPAIRED, VARIANTS
from lab.host.protocol.messages import CloseReason
from lab.host.tables.closing import in_order, old_remote, told, waiting
from lab.host.tables.stage import TCP, WEBSOCKET
from tests.host.tables.cases import HASTY, done

SILENT = VARIANTS["no session_closed"]
ERROR = Ending(EndCause.ERROR, "no model")


def test_an_end_is_told_with_its_reason_and_error_over_either_carrier() -> None:
    rows = [done(told(carrier, REPAIRED, ERROR, CloseReason.ERROR)) for carrier in (TCP, WEBSOCKET)]

    assert [(row.as_predicted, row.seen) for row in rows] == [(True, "ERROR: no model")] * 2


def test_another_reason_than_the_one_written_beside_the_end_is_wrong() -> None:
    assert not done(told(TCP, REPAIRED, ERROR, CloseReason.COMPLETED)).as_predicted


def test_the_silent_host_is_as_labelled_when_it_tells_all_but_the_end() -> None:
    row = done(told(TCP, SILENT, ERROR, CloseReason.ERROR))

    assert (row.as_predicted, row.right, row.seen) == (True, False, "not told")


def test_a_host_that_is_wrong_in_another_way_is_not_as_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostMachine, "happened", lambda *_: [])

    rows = [done(told(TCP, SILENT, ERROR, CloseReason.ERROR)), done(in_order(TCP, SILENT))]
    assert [(row.right, row.as_predicted) for row in rows] == [(False, False)] * 2


def test_an_old_remote_ignores_what_it_is_told_and_where_nothing_is_told_that_is_not_shown() -> None:
    rows = [done(old_remote(TCP, variant)) for variant in (REPAIRED, SILENT)]

    assert [(row.right, row.seen) for row in rows] == [(True, "ignored; answered"), (False, "no event; answered")]


def test_a_host_that_keeps_a_closed_session_lets_who_waits_for_it_wait() -> None:
    row = done(waiting(HASTY, VARIANTS["closed session kept"]))

    assert (row.as_predicted, row.seen) == (True, "timed out")
