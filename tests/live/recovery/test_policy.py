"""After a loss: what is dialled, when, and how it ends."""

import pytest

from lab.live.recovery.commands import Abandon, Adopt, CloseOld, Dial, GiveUp, Happening, Report, Restore
from lab.live.recovery.policy import Policy, Recovery
from lab.live.recovery.states import TABLE, Event, State
from tests.live.recovery.script import DETECTED, deeds, lost, run, told

INTERNAL = "Internal error encountered."


def test_at_the_detection_a_close_is_queued_on_the_old_connection_and_the_first_attempt_starts() -> None:
    _, commands = lost()

    assert deeds(commands) == [CloseOld(0), Dial(1, "h0")]
    assert told(commands, Happening.LOST) == {"attempt": 0, "by": "silence", "handle": True}


def test_a_server_that_holds_the_session_refuses_four_attempts_and_the_window_ends_with_the_last() -> None:
    recovery, first = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.56)
    done = run(recovery, DETECTED + 3.7, refuse_after=0.56)

    assert isinstance(deeds(first)[-1], Dial)
    starts = [(round(at - DETECTED, 3), command.handle) for at, command in done if isinstance(command, Dial)]
    assert starts == [(1.0, "h0"), (2.0, "h0"), (3.0, "h0"), (3.56, None)]


@pytest.mark.parametrize("odd", [0.1, 1.7654321, 0.3 + 1e5])
def test_no_attempt_starts_at_the_very_end_of_the_window_whatever_the_rounding(odd: float) -> None:
    recovery = Recovery(handle="h0")
    recovery.lost(now=odd)
    recovery.refused(1, 1011, now=odd + 0.5)
    done = run(recovery, odd + 5, refuse_after=0.5)

    assert sum(isinstance(command, Dial) and command.handle is not None for _, command in done) == 3


def test_an_attempt_that_is_open_at_the_end_of_the_window_is_abandoned() -> None:
    recovery, _ = lost()

    assert recovery.next_at() == DETECTED + 4
    assert deeds(recovery.wake(now=DETECTED + 3.99)) == []
    commands = recovery.wake(now=DETECTED + 4)
    assert deeds(commands) == [Abandon(1), Dial(2, None)]
    assert told(commands, Happening.ABANDONED)["took_s"] == pytest.approx(4.0)


def test_a_refusal_late_in_its_second_delays_the_next_start_to_it_and_no_further() -> None:
    recovery, _ = lost()

    assert deeds(recovery.refused(1, 1011, now=DETECTED + 1.4)) == [Dial(2, "h0")]
    recovery.refused(2, 1011, now=DETECTED + 1.5)
    assert recovery.next_at() == pytest.approx(DETECTED + 2.4)


def test_an_idle_abort_is_resumed_by_the_second_attempt() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.6)
    assert deeds(recovery.wake(now=DETECTED + 1)) == [Dial(2, "h0")]

    commands = recovery.ready(2, now=DETECTED + 1.3)
    assert deeds(commands) == [Adopt(2, resumed=True)]
    assert told(commands, Happening.ADOPTED) == {
        "attempt": 2,
        "resumed": True,
        "since_lost_s": pytest.approx(1.3),
        "attempts": 2,
    }
    assert recovery.next_at() is None
    assert recovery.handle == "h0"


def test_a_fallback_is_adopted_then_told_the_history() -> None:
    recovery, _ = lost(Policy(note=False))
    recovery.wake(now=DETECTED + 4)

    assert deeds(recovery.ready(2, now=DETECTED + 4.3)) == [Adopt(2, resumed=False), Restore(2, note=False)]
    assert recovery.handle is None


@pytest.mark.parametrize("code", [1007, 1008])
def test_a_dead_handle_is_not_tried_again(code: int) -> None:
    recovery, _ = lost()
    commands = recovery.refused(1, code, "gone", now=DETECTED + 0.2)

    assert deeds(commands) == [Dial(2, None)]
    assert told(commands, Happening.HANDLE_DEAD) == {"attempt": 1, "code": code}
    assert recovery.handle is None


def test_the_same_code_on_a_new_session_is_a_refusal_like_any_other() -> None:
    recovery, _ = lost(handle=None)
    commands = recovery.refused(1, 1007, "no", now=DETECTED + 0.2)

    assert [type(command) for command in commands] == [Report]
    assert deeds(recovery.wake(now=DETECTED + 1)) == [Dial(2, None)]


def test_without_a_handle_the_fallback_comes_at_once() -> None:
    _, commands = lost(handle=None)

    assert deeds(commands) == [CloseOld(0), Dial(1, None)]
    assert told(commands, Happening.FALLBACK) == {"why": "the session has no handle"}


@pytest.mark.parametrize("handle", ["h0", None])
def test_without_a_fallback_the_user_is_told_at_the_windows_end(handle: str | None) -> None:
    recovery, commands = lost(Policy(fallback=False), handle=handle)
    if handle is not None:
        recovery.refused(1, 1011, now=DETECTED + 0.5)
        commands = [command for _, command in run(recovery, DETECTED + 5, refuse_after=0.5)]

    reasons = [command.reason for command in commands if isinstance(command, GiveUp)]
    assert reasons == ["the window is over" if handle else "the session has no handle"]
    assert recovery.state is State.GIVEN_UP
    assert told(commands, Happening.GIVEN_UP)["attempts"] == (4 if handle else 0)


def test_a_dead_handle_without_a_fallback_is_the_end() -> None:
    recovery, _ = lost(Policy(fallback=False))

    assert GiveUp("the handle is dead (1008 gone)") in recovery.refused(1, 1008, "gone", now=DETECTED + 0.5)


def test_every_failure_is_reported_with_what_is_known_of_it() -> None:
    recovery, _ = lost()
    refused = recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)
    recovery.wake(now=DETECTED + 1)
    failed = recovery.failed(2, "no route to host", now=DETECTED + 1.25)

    assert told(refused, Happening.REFUSED) == {
        "attempt": 1,
        "code": 1011,
        "reason": INTERNAL,
        "resume": True,
        "took_s": 0.5,
    }
    assert told(failed, Happening.FAILED) == {
        "attempt": 2,
        "why": "no route to host",
        "resume": True,
        "took_s": 0.25,
    }


def test_a_new_session_that_does_not_answer_is_given_up_and_tried_again() -> None:
    recovery, _ = lost(Policy(attempt_s=3.0), handle=None)

    assert recovery.next_at() == DETECTED + 3
    commands = recovery.wake(now=DETECTED + 3)
    assert deeds(commands) == [Abandon(1), Dial(2, None)]
    assert told(commands, Happening.FAILED)["why"] == "no answer"


def test_the_user_is_told_when_the_time_is_spent() -> None:
    recovery, _ = lost(Policy(give_up_s=12.0))
    recovery.wake(now=DETECTED + 4)

    assert recovery.next_at() == DETECTED + 12
    commands = recovery.wake(now=DETECTED + 12)
    assert deeds(commands) == [Abandon(2), GiveUp("no connection in 12 s")]
    assert recovery.next_at() is None


def test_the_user_is_told_when_the_attempts_are_spent_and_one_was_kept_for_the_fallback() -> None:
    recovery, _ = lost(Policy(max_attempts=3))
    recovery.refused(1, 1011, now=DETECTED + 0.5)
    recovery.wake(now=DETECTED + 1)

    assert deeds(recovery.refused(2, 1011, now=DETECTED + 1.5)) == [Dial(3, None)]
    commands = recovery.refused(3, 1011, "RESOURCE_EXHAUSTED", now=DETECTED + 1.7)
    assert deeds(commands) == [GiveUp("3 attempts came to nothing")]


def test_without_a_fallback_none_is_kept() -> None:
    recovery, _ = lost(Policy(max_attempts=1, fallback=False))

    assert recovery.state is State.RESUMING
    assert GiveUp("the window is over") in recovery.refused(1, 1011, now=DETECTED + 0.5)


def test_when_late_for_the_whole_window_no_attempt_to_resume_starts() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, now=DETECTED + 0.5)

    assert deeds(recovery.wake(now=DETECTED + 9)) == [Dial(2, None)]


# The new session beside the attempts to resume.


def test_in_parallel_a_new_session_is_dialled_beside_the_attempt_to_resume_and_wins_if_it_is_first() -> None:
    recovery, commands = lost(Policy(parallel=True))
    assert deeds(commands) == [CloseOld(0), Dial(1, "h0"), Dial(2, None)]

    assert deeds(recovery.ready(2, now=DETECTED + 0.3)) == [Adopt(2, resumed=False), Restore(2, note=True), Abandon(1)]


def test_in_parallel_a_resumed_session_wins_only_if_it_is_ready_first() -> None:
    recovery, _ = lost(Policy(parallel=True))

    assert deeds(recovery.ready(1, now=DETECTED + 0.3)) == [Adopt(1, resumed=True), Abandon(2)]


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_of_two_that_become_ready_at_once_the_second_is_closed(first: int, second: int) -> None:
    recovery, _ = lost(Policy(parallel=True))
    recovery.ready(first, now=DETECTED + 0.3)

    assert recovery.ready(second, now=DETECTED + 0.3) == [
        Report(Happening.LATE, {"attempt": second}),
        Abandon(second, 1000),
    ]
    assert recovery.connection == first


def test_in_parallel_both_kinds_keep_their_own_distance() -> None:
    recovery, _ = lost(Policy(parallel=True))
    recovery.refused(2, 1011, "RESOURCE_EXHAUSTED", now=DETECTED + 0.1)
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)

    assert deeds(recovery.wake(now=DETECTED + 0.9)) == []
    assert deeds(recovery.wake(now=DETECTED + 1)) == [Dial(3, "h0"), Dial(4, None)]


def test_in_parallel_the_windows_end_leaves_the_new_session_alone() -> None:
    recovery, _ = lost(Policy(parallel=True))

    assert deeds(recovery.wake(now=DETECTED + 4)) == [Abandon(1)]
    assert deeds(recovery.ready(2, now=DETECTED + 5)) == [Adopt(2, resumed=False), Restore(2, note=True)]


def test_in_parallel_the_attempts_of_both_kinds_are_counted_together() -> None:
    recovery, _ = lost(Policy(parallel=True, max_attempts=2))
    assert deeds(recovery.refused(2, 1011, now=DETECTED + 0.1)) == []

    assert deeds(recovery.refused(1, 1011, now=DETECTED + 0.5)) == [GiveUp("2 attempts came to nothing")]


def test_without_a_fallback_nothing_is_parallel() -> None:
    _, commands = lost(Policy(parallel=True, fallback=False))

    assert deeds(commands) == [CloseOld(0), Dial(1, "h0")]


# The path comes back.


def test_with_the_path_back_the_old_connection_is_closed_before_the_next_attempt() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)

    assert deeds(recovery.path_back(now=DETECTED + 0.7)) == [CloseOld(0)]
    assert recovery.next_at() == pytest.approx(DETECTED + 1.7)
    assert deeds(recovery.wake(now=DETECTED + 1)) == [], "its turn, but the close has not arrived"
    assert deeds(recovery.old_closed(now=DETECTED + 1.1)) == [Dial(2, "h0")]


def test_an_attempt_that_was_open_at_the_close_is_followed_by_another_at_once() -> None:
    recovery, _ = lost()
    recovery.path_back(now=DETECTED + 0.1)

    assert deeds(recovery.old_closed(now=DETECTED + 0.12)) == []
    assert deeds(recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)) == [Dial(2, "h0")]
    recovery.refused(2, 1011, INTERNAL, now=DETECTED + 0.6)
    assert recovery.next_at() == pytest.approx(DETECTED + 1.5), "only once"


def test_a_queued_close_that_is_answered_shows_the_path_too() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)

    assert deeds(recovery.old_closed(now=DETECTED + 0.6)) == [Dial(2, "h0")]


def test_an_old_socket_that_merely_went_shows_nothing() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)

    assert deeds(recovery.old_closed(now=DETECTED + 0.6, echoed=False)) == []
    assert recovery.next_at() == DETECTED + 1


def test_an_old_socket_that_goes_while_its_close_is_awaited_ends_the_wait() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)
    recovery.path_back(now=DETECTED + 0.6)

    assert deeds(recovery.old_closed(now=DETECTED + 0.7, echoed=False)) == [Dial(2, "h0")]


def test_a_close_that_is_not_answered_is_not_awaited_for_ever() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)
    recovery.path_back(now=DETECTED + 0.6)

    assert deeds(recovery.wake(now=DETECTED + 1.59)) == []
    assert deeds(recovery.wake(now=DETECTED + 1.6)) == [Dial(2, "h0")]


def test_a_path_that_is_back_late_in_the_window_gets_its_attempt_and_the_time_for_it() -> None:
    recovery, _ = lost()
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 2.9)
    recovery.refused(2, 1011, INTERNAL, now=DETECTED + 3.5)
    recovery.path_back(now=DETECTED + 3.8)
    assert recovery.state is State.CLOSING

    assert deeds(recovery.old_closed(now=DETECTED + 4.2)) == [Dial(3, "h0")]
    assert recovery.next_at() == pytest.approx(DETECTED + 5.2)
    assert deeds(recovery.ready(3, now=DETECTED + 4.8)) == [Adopt(3, resumed=True)]


def test_an_attempt_that_is_accepted_while_the_close_is_awaited_is_adopted() -> None:
    recovery, _ = lost()
    recovery.path_back(now=DETECTED + 0.1)

    assert deeds(recovery.ready(1, now=DETECTED + 0.2)) == [Adopt(1, resumed=True)]


def test_a_handle_that_dies_while_the_close_is_awaited_is_dead() -> None:
    recovery, _ = lost()
    recovery.path_back(now=DETECTED + 0.1)

    assert deeds(recovery.refused(1, 1008, now=DETECTED + 0.2)) == [Dial(2, None)]


def test_in_parallel_the_new_session_goes_on_while_the_close_is_awaited() -> None:
    recovery, _ = lost(Policy(parallel=True))
    recovery.path_back(now=DETECTED + 0.1)

    assert deeds(recovery.ready(2, now=DETECTED + 0.3)) == [Adopt(2, resumed=False), Restore(2, note=True), Abandon(1)]


def test_a_path_that_is_back_is_told_once() -> None:
    recovery, _ = lost()

    assert len(recovery.path_back(now=DETECTED + 0.1)) == 2
    assert recovery.path_back(now=DETECTED + 0.2) == []


def test_a_path_back_after_the_fallback_closes_the_old_connection_and_nothing_else() -> None:
    recovery, _ = lost()
    recovery.wake(now=DETECTED + 4)
    recovery.ready(2, now=DETECTED + 4.3)

    commands = recovery.path_back(now=DETECTED + 20)
    assert deeds(commands) == [CloseOld(0)]
    assert deeds(recovery.old_closed(now=DETECTED + 20.1)) == []
    assert recovery.connection == 2


def test_a_path_back_while_the_new_session_is_dialled_closes_the_old_connection_and_nothing_else() -> None:
    recovery, _ = lost()
    recovery.wake(now=DETECTED + 4)

    assert deeds(recovery.path_back(now=DETECTED + 4.1)) == [CloseOld(0)]
    assert recovery.state is State.FALLING_BACK
    assert deeds(recovery.old_closed(now=DETECTED + 4.2)) == []


def test_a_policy_may_ignore_the_path_and_goes_on_as_before() -> None:
    recovery, _ = lost(Policy(close_before_resume=False))
    recovery.refused(1, 1011, INTERNAL, now=DETECTED + 0.5)

    assert [type(command) for command in recovery.path_back(now=DETECTED + 0.6)] == [Report]
    assert deeds(recovery.wake(now=DETECTED + 1)) == [Dial(2, "h0")]


def test_a_policy_may_leave_the_old_connection_alone_until_the_loss_has_ended() -> None:
    recovery, commands = lost(Policy(close_old=False))
    assert deeds(commands) == [Dial(1, "h0")]

    assert deeds(recovery.ready(1, now=DETECTED + 0.5)) == [Adopt(1, resumed=True), CloseOld(0)]


def test_what_the_server_closed_itself_needs_no_close() -> None:
    recovery = Recovery(handle="h0")

    assert deeds(recovery.lost(now=DETECTED, gone=True)) == [Dial(1, "h0")]
    assert recovery.path_back(now=DETECTED + 0.1) == []
    assert recovery.old_closed(now=DETECTED + 0.1) == []


# More than one loss.


def fallen_back() -> Recovery:
    """A recovery whose fallback, attempt 2, is adopted at DETECTED + 4.3."""
    recovery, _ = lost()
    recovery.wake(now=DETECTED + 4)
    recovery.ready(2, now=DETECTED + 4.3)
    return recovery


def test_a_second_loss_has_a_window_of_its_own_with_the_new_handle() -> None:
    recovery = fallen_back()
    recovery.issued("h1")

    assert deeds(recovery.lost(now=DETECTED + 20)) == [CloseOld(2), Dial(3, "h1")]
    assert recovery.next_at() == DETECTED + 24


def test_a_second_loss_before_the_new_handle_falls_back_at_once() -> None:
    recovery = fallen_back()

    assert deeds(recovery.lost(now=DETECTED + 20)) == [CloseOld(2), Dial(3, None)]


def test_a_new_session_that_may_know_nothing_is_not_resumed() -> None:
    recovery = fallen_back()
    recovery.issued("h1")

    assert deeds(recovery.lost(now=DETECTED + 20, restored=False)) == [CloseOld(2), Dial(3, None)]


def test_each_lost_connection_is_closed_when_its_own_path_is_back() -> None:
    recovery = fallen_back()
    recovery.issued("h1")
    recovery.lost(now=DETECTED + 20)

    assert deeds(recovery.path_back(attempt=0, now=DETECTED + 20.1)) == [CloseOld(0)]
    assert deeds(recovery.old_closed(attempt=0, now=DETECTED + 20.2)) == []
    recovery.refused(3, 1011, now=DETECTED + 20.25)
    assert deeds(recovery.path_back(attempt=2, now=DETECTED + 20.3)) == [CloseOld(2)]
    assert deeds(recovery.wake(now=DETECTED + 21.2)) == [], "this close is awaited, the other one was not"


def test_a_server_that_takes_and_drops_is_dialled_at_a_distance_and_not_for_ever() -> None:
    recovery, now, starts = Recovery(Policy(max_attempts=5), handle="h0"), DETECTED, []
    while recovery.state is not State.GIVEN_UP:
        commands = recovery.lost(now=now, gone=True) or recovery.wake(now=now)
        for command in commands:
            if isinstance(command, Dial):
                starts.append((now - DETECTED, command.handle is not None))
                recovery.ready(command.attempt, now=now)
                recovery.issued("h1")
        now = recovery.next_at() or now

    assert starts == [(0.0, True), (1.0, True), (2.0, True), (3.0, True), (3.0, False)], "the last is the kept one"


def test_a_connection_that_held_begins_a_new_count() -> None:
    recovery, _ = lost(Policy(max_attempts=2))
    recovery.ready(1, now=DETECTED + 0.5)
    commands = recovery.lost(now=DETECTED + 10.5)
    recovery.ready(2, now=DETECTED + 11)

    assert deeds(commands) == [CloseOld(1), Dial(2, "h0")]
    assert GiveUp("2 attempts came to nothing") not in recovery.lost(now=DETECTED + 20.9)
    assert deeds(recovery.refused(3, 1011, now=DETECTED + 21)) == [GiveUp("2 attempts came to nothing")]


def test_a_connection_is_lost_once() -> None:
    recovery, _ = lost()

    assert recovery.lost(now=DETECTED + 0.1) == []
    assert recovery.lost(now=DETECTED + 0.1, attempt=0) == []


def test_an_open_attempt_that_is_lost_has_failed() -> None:
    recovery, _ = lost()

    assert told(recovery.lost(now=DETECTED + 0.1, attempt=1), Happening.FAILED)["why"] == "lost"


def test_answers_to_attempts_that_are_over_change_nothing() -> None:
    recovery, _ = lost()
    recovery.wake(now=DETECTED + 4)

    assert recovery.refused(1, 1011, now=DETECTED + 4.1) == []
    assert recovery.failed(1, "reset", now=DETECTED + 4.1) == []
    recovery.ready(2, now=DETECTED + 4.2)
    assert recovery.ready(2, now=DETECTED + 4.2) == []


# Names of the session.


def test_an_update_that_is_not_resumable_leaves_the_name_that_there_was() -> None:
    recovery = Recovery(handle="h0")
    recovery.issued("h9", resumable=False)
    recovery.issued(None)

    assert recovery.handle == "h0"


def test_only_the_adopted_connection_names_the_session() -> None:
    recovery, _ = lost()
    recovery.issued("h8")
    recovery.issued("h9", attempt=1)
    assert recovery.handle == "h0"

    recovery.ready(1, now=DETECTED + 0.3)
    recovery.issued("h9", attempt=0)
    assert recovery.handle == "h0"
    recovery.issued("h1", attempt=1)
    assert recovery.handle == "h1"


# The user wants no more.


def test_a_wanted_close_closes_and_never_reconnects() -> None:
    recovery = Recovery(handle="h0")

    assert deeds(recovery.close(now=DETECTED)) == [CloseOld(0)]
    assert recovery.lost(now=DETECTED + 0.1) == []
    assert recovery.lost(now=DETECTED + 0.1, attempt=0) == []
    assert deeds(recovery.old_closed(now=DETECTED + 0.1)) == []
    assert recovery.next_at() is None
    assert recovery.wake(now=DETECTED + 100) == []


def test_a_wanted_close_during_a_recovery_closes_whatever_is_open() -> None:
    recovery, _ = lost(Policy(parallel=True, close_old=False))

    assert deeds(recovery.close(now=DETECTED + 0.1)) == [Abandon(1), Abandon(2), CloseOld(0)]
    assert deeds(recovery.ready(1, now=DETECTED + 0.2)) == [Abandon(1)]
    assert recovery.close(now=DETECTED + 0.3) == []


def test_a_wanted_close_after_all_was_given_up_is_only_noted() -> None:
    recovery, _ = lost(Policy(fallback=False), handle=None)

    assert deeds(recovery.close(now=DETECTED + 1)) == []
    assert recovery.state is State.CLOSED


def test_what_was_given_up_stays_so() -> None:
    recovery, _ = lost(Policy(fallback=False), handle=None)

    assert recovery.lost(now=DETECTED + 1) == []
    assert deeds(recovery.path_back(now=DETECTED + 2)) == [CloseOld(0)]
    assert deeds(recovery.ready(7, now=DETECTED + 3)) == [Abandon(7)]


# The table.


def test_the_table_ends_every_recovery() -> None:
    recovering = {State.RESUMING, State.CLOSING, State.FALLING_BACK}

    assert set(TABLE) == set(State)
    for state in recovering:
        assert TABLE[state][Event.READY] is State.ATTACHED
        assert TABLE[state][Event.NO_WAY_LEFT] is State.GIVEN_UP
    assert all(TABLE[state][Event.WANTED_CLOSE] is State.CLOSED for state in set(State) - {State.CLOSED})
    assert TABLE[State.CLOSED] == {}
