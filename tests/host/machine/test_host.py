"""A host answers each request once, by one session, and the end of a session is the last that is said of it."""

import pytest

from lab.host.machine.commands import Audit
from lab.host.machine.misuse import AlreadyRegistered, HostOver
from lab.host.machine.states import HostState
from lab.host.machine.variant import VARIANTS
from tests.host.machine.playbook import HostPlay


def play(script: str, variant: str = "repaired") -> HostPlay:
    made = HostPlay(VARIANTS[variant])
    made.run(script)
    return made


def test_without_a_session_a_request_is_answered_with_an_error() -> None:
    play("""
        < 1 Ping
        > send 1 no active session
        < 2 Later
        > send 2 no active session
    """)


def test_a_session_answers_what_it_is_asked() -> None:
    play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        < 2 State
        > ask s1 2 GetSessionState
        answer 2 SessionState
        > send 2 SessionState
        fail 1 it broke
        > send 1 it broke
    """)


def test_what_was_answered_is_not_answered_again() -> None:
    made = play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        answer 1 Pong
        > send 1 Pong
        answer 1 Pong
        answer 9 Pong
    """)

    assert [note.event for note in made.notes].count(Audit.LATE) == 2


def test_a_request_of_a_later_version_is_answered_with_an_error() -> None:
    play("""
        register s1
        < 1 Later
        > send 1 unknown request
    """)


def test_a_closed_session_answers_who_waits_then_tells_its_end_then_is_gone() -> None:
    play("""
        register s1
        s1 happened
        > send event AgentStateChanged
        < 1 Ping
        > ask s1 1 Ping
        s1 closed ERROR it broke
        > forget 1
        > send 1 the session closed before it answered
        > send closed ERROR it broke
        answer 1 Pong
        s1 happened
        < 2 Ping
        > send 2 no active session
        s1 closed ERROR again
    """)


def test_another_session_replaces_the_attached_one_from_the_next_request_on() -> None:
    play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        register s2
        < 2 Ping
        > ask s2 2 Ping
        s1 happened
        answer 1 Pong
        > send 1 Pong
        unregister s1                      # it is not attached any more
        s1 closed COMPLETED
        < 3 Ping
        > ask s2 3 Ping
    """)


def test_a_replaced_session_that_closes_answers_what_it_was_asked_and_its_end_is_not_told() -> None:
    play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        register s2
        s1 closed COMPLETED
        > forget 1
        > send 1 the session closed before it answered
    """)


def test_a_detached_session_still_answers_what_it_was_asked() -> None:
    play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        unregister s1
        < 2 Ping
        > send 2 no active session
        answer 1 Pong
        > send 1 Pong
    """)


def test_a_session_that_began_again_is_told_of_again() -> None:
    play("""
        register s1
        s1 closed COMPLETED
        > send closed COMPLETED
        register s1
        s1 happened
        > send event AgentStateChanged
        s1 closed ERROR
        > send closed ERROR
    """)


def test_of_sessions_that_closed_nothing_is_kept() -> None:
    made = play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        s1 closed COMPLETED
        > forget 1
        > send 1 the session closed before it answered
        > send closed COMPLETED
    """)
    assert "s1" not in str(vars(made.host) | vars(made.host._requests))


def test_a_session_registered_twice_is_its_owners_mistake_and_stays_registered() -> None:
    made = play("register s1")
    with pytest.raises(AlreadyRegistered, match=r"s1 is registered already.*Fix: register each session once"):
        made.run("register s1")
    made.run("""
        < 1 Ping
        > ask s1 1 Ping
    """)


def test_the_end_of_a_simulation_is_the_jobs_with_a_session_and_without() -> None:
    play("""
        < 1 Finalize
        > job 1
        register s1
        < 2 Finalize
        > job 2
        s1 closed COMPLETED                # it is not the session's to answer
        > send closed COMPLETED
        answer 1 Finalized
        > send 1 Finalized
        > flush 1
        answer 2 Finalized
        > send 2 Finalized
        > flush 2
        flushed 1
        > delivered 1
        flushed 2
        > delivered 2
    """)


def test_the_jobs_answer_that_is_not_written_within_three_seconds_is_told_to_be_undelivered() -> None:
    made = play("""
        < 1 Finalize
        > job 1
        @5 answer 1 Finalized
        > send 1 Finalized
        > flush 1
        @7.9 wake
    """)
    assert made.host.next_at() == 8
    made.run("""
        @8 wake
        > undelivered 1
        flushed 1                          # it was written after all: nobody waits for that any more
        wake
        < 2 Ping
        > send 2 no active session
    """)
    assert made.host.next_at() is None


def test_the_jobs_answer_is_undelivered_at_once_where_the_transport_refuses_it_or_is_lost() -> None:
    play("""
        < 1 Finalize
        > job 1
        < 2 Finalize
        > job 2
        answer 1 Finalized
        > send 1 Finalized
        > flush 1
        unsent 1
        > undelivered 1
        flushed 1
        unsent 1
        fail 2 no verdict
        > send 2 no verdict
        > flush 2
        lost
        > undelivered 2
        > abort
        flushed 2
    """)


def test_what_a_close_writes_is_delivered_and_what_it_cannot_write_is_not() -> None:
    script = """
        < 1 Finalize
        > job 1
        @1 answer 1 Finalized
        > send 1 Finalized
        > flush 1
        @2 close
        > flush
    """
    play(
        script
        + """
        @3 flushed
        > delivered 1
        > close by 5
        flushed 1
    """
    )
    assert play(script).host.next_at() == 4
    play(
        script
        + """
        @5 wake
        > undelivered 1
        > abort
    """
    )


def test_a_close_answers_who_waits_writes_what_is_queued_and_goes() -> None:
    made = play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        < 2 Finalize
        > job 2
        @5 close
        > forget 1
        > send 1 the host is closing
        > forget 2
        > send 2 the host is closing
        > flush
        close
        < 3 Finalize
        > send 3 the host is closing
        s1 closed JOB_SHUTDOWN
        @7 wake
        flushed
        > close by 8
        wake
        < 4 Ping
    """)

    assert made.host.state is HostState.CLOSED
    assert made.host.next_at() is None


def test_what_cannot_be_written_within_three_seconds_is_given_up() -> None:
    made = play("""
        @5 close
        > flush
    """)
    assert made.host.next_at() == 8
    made.run("""
        @8 wake
        > abort
        flushed
    """)


def test_a_closing_or_closed_host_takes_no_session() -> None:
    made = play("""
        close
        > flush
    """)
    with pytest.raises(HostOver, match="Fix: register sessions before its close"):
        made.run("register s1")
    made.run("""
        lost
        > abort
    """)
    with pytest.raises(HostOver):
        made.run("register s1")


def test_a_lost_transport_forgets_who_waits() -> None:
    made = play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        lost
        > forget 1
        > abort
        lost
        answer 1 Pong
        s1 happened
        s1 closed ERROR
        close
        <garbage
    """)

    assert made.host.state is HostState.CLOSED
    assert made.host.unanswered == frozenset()


def test_what_is_no_message_is_told_and_the_next_one_is_read() -> None:
    play("""
        register s1
        <garbage
        > send complaint A frame is no message of the set: none.
        < 1 Ping
        > ask s1 1 Ping
    """)


def test_a_frame_that_is_too_long_is_told_and_ends_the_transport() -> None:
    play("""
        <long
        > send complaint A frame of 2 octets is longer than the 1 that a message may have. Fix: say less in it.
        > flush
    """)


def test_a_response_to_a_host_is_a_mistake_and_an_event_is_ignored() -> None:
    made = play("""
        <response 7
        > send complaint Response 7 answers no request: a host asks nothing.
        <event
    """)

    assert [note.event for note in made.notes] == [Audit.UNASKED, Audit.IGNORED]


def test_a_second_request_of_an_id_that_waits_is_not_answered_in_its_name() -> None:
    play("""
        register s1
        < 1 Ping
        > ask s1 1 Ping
        < 1 State
        > send complaint Request 1 is being answered; a second one of that id is not.
        answer 1 Pong
        > send 1 Pong
        < 1 State                          # it does not wait any more
        > ask s1 1 GetSessionState
    """)


def test_defect_no_event_tells_the_end() -> None:
    play(
        """
        register s1
        s1 closed ERROR
        < 1 Ping
        > send 1 no active session
        """,
        "no session_closed",
    )


def test_defect_a_closed_session_is_asked_on() -> None:
    play(
        """
        register s1
        < 1 Ping
        > ask s1 1 Ping
        s1 closed ERROR
        > send closed ERROR
        s1 happened
        < 2 State
        > ask s1 2 GetSessionState
        register s2
        < 3 State
        > ask s2 3 GetSessionState
        """,
        "closed session kept",
    )


def test_defect_requests_without_a_session_are_dropped_but_not_the_finalizing() -> None:
    made = play(
        """
        < 1 Ping
        < 2 Finalize
        > job 2
        """,
        "requests dropped",
    )

    assert [note.event for note in made.notes] == [Audit.DROPPED]


def test_defect_without_a_session_the_finalizing_is_dropped() -> None:
    play(
        """
        < 1 Finalize
        < 2 Ping
        > send 2 no active session
        register s1
        < 3 Finalize
        > job 3
        """,
        "finalize dropped",
    )
