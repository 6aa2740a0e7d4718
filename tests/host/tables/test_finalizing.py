"""Cases of a simulation's end; all of them: ``lab/experiments/test_host_tables.py``."""

from lab.host.machine.host import CLOSING
from lab.host.machine.remote import TRANSPORT_CLOSED
from lab.host.machine.variant import REPAIRED, VARIANTS
from lab.host.tables.finalizing import (
    USERS,
    after_shutdown,
    deletes,
    hangs_up,
    says_nothing,
    while_draining,
)
from lab.host.tables.stage import TCP, WEBSOCKET
from tests.host.tables.cases import HASTY, done


def test_the_verdict_comes_after_the_agent_has_hung_up() -> None:
    row = done(hangs_up(WEBSOCKET, REPAIRED, USERS))

    assert (row.as_predicted, row.seen) == (True, f"verdict: {USERS.reason}")


def test_a_finalize_that_is_dropped_waits_out_its_time_out() -> None:
    row = done(hangs_up(HASTY, VARIANTS["finalize dropped"], USERS))

    assert (row.as_predicted, row.seen) == (True, "no answer in time")


def test_a_shutdown_at_once_leaves_nobody_to_ask() -> None:
    row = done(hangs_up(TCP, VARIANTS["shutdown at once"], USERS))

    assert (row.as_predicted, row.right, row.seen in {CLOSING, TRANSPORT_CLOSED}) == (True, False, True)


def test_a_room_that_goes_at_once_takes_the_simulator_with_it() -> None:
    row = done(deletes(TCP, VARIANTS["room deleted at once"]))

    assert (row.as_predicted, row.seen) == (True, "asked for the verdict 0 times, deleted 1 times, not told")


def test_too_late_is_told_by_a_host_that_drains_and_then_by_the_transports_end() -> None:
    rows = [done(while_draining(TCP)), done(after_shutdown(TCP))]

    assert [(row.as_predicted, row.seen) for row in rows] == [(True, CLOSING), (True, TRANSPORT_CLOSED)]


def test_a_simulator_that_says_nothing_is_waited_for() -> None:
    assert done(says_nothing(HASTY)).as_predicted
