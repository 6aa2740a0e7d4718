"""Cases of a verdict that nobody takes; all of them: ``lab/experiments/test_host_tables.py``."""

from dataclasses import replace

import pytest

from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.tables import lost_verdicts
from lab.host.tables.lost_verdicts import refused, unread
from lab.host.tables.stage import TCP, WEBSOCKET, Stage
from tests.host.tables.cases import HASTY, done

WAITED_FOR = VARIANTS["lost verdict waited for"]


def test_a_verdict_that_is_not_taken_ends_the_wait() -> None:
    row = done(refused(WEBSOCKET, REPAIRED))

    assert (row.as_predicted, row.seen) == (True, "shut down at once")


def test_one_that_is_waited_for_is_waited_for_until_the_time_out() -> None:
    row = done(refused(HASTY, WAITED_FOR))

    assert (row.as_predicted, row.seen) == (True, "shut down after the time-out")


def test_one_behind_full_buffers_is_given_up_after_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_verdicts, "QUICK_S", 0.05)
    monkeypatch.setattr(lost_verdicts, "FULL_S", 0.05)

    row = done(unread(replace(TCP, request_s=0.1), REPAIRED))
    assert (row.as_predicted, row.seen) == (True, "shut down after the drain")


def test_buffers_that_are_not_full_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_verdicts, "BACKLOG", 0)

    row = done(unread(replace(TCP, request_s=0.1), REPAIRED))
    assert (row.as_predicted, row.seen) == (False, "the buffers took all of it")


@pytest.mark.parametrize("share", [0.98, 0.99, 0.995, 1.0, 1.01])
@pytest.mark.parametrize("variant", [REPAIRED, WAITED_FOR], ids=["repaired", "waited for"])
def test_no_time_is_both_right_and_the_defect(share: float, variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Event loops round: a time-out may be over a little before its time."""
    done_at_all = Stage.done

    async def took(stage: Stage) -> float:
        await done_at_all(stage)
        return share * HASTY.session_end_s

    monkeypatch.setattr(Stage, "done", took)
    row = done(refused(HASTY, variant))

    assert row.right is not row.shows
