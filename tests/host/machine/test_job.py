"""A job tells the ends of its sessions, serves its simulator, and deletes its room last and once."""

import pytest

from lab.host.machine.misuse import NotStarted
from lab.host.machine.states import JobState
from lab.host.machine.variant import VARIANTS
from tests.host.machine.playbook import JobPlay


def play(script: str, *, simulated: bool = True, variant: str = "repaired") -> JobPlay:
    made = JobPlay(simulated=simulated, variant=VARIANTS[variant])
    made.run(script)
    return made


def test_a_session_attaches_in_the_jobs_room_and_has_its_own_host_elsewhere() -> None:
    play("""
        started s1 room
        > register s1
        started s2 other
        > host s2 other
        closed s1
        closed s2
        > closehost s2
        closed s2
    """)


def test_a_session_that_began_already_or_too_late_is_refused() -> None:
    made = play("""
        started s1 room
        > register s1
    """)
    with pytest.raises(NotStarted, match=r"s1 is running already. Fix: start each once"):
        made.run("started s1 room")
    made.run("""
        shutdown
        > close s1 JOB_SHUTDOWN
    """)
    with pytest.raises(NotStarted, match=r"s2 comes too late.*Fix: start sessions before the shutdown"):
        made.run("started s2 room")


def test_without_a_simulation_a_shutdown_closes_the_sessions_then_the_host() -> None:
    made = play(
        """
        started s1 room
        > register s1
        shutdown
        > close s1 JOB_SHUTDOWN
        shutdown
        closed s1
        > closehost
        hostclosed
        """,
        simulated=False,
    )

    assert made.job.state is JobState.DONE


def test_under_a_simulation_it_serves_until_the_verdict_is_out() -> None:
    made = play("""
        started s1 room
        > register s1
        shutdown
        > close s1 JOB_SHUTDOWN
        closed s1
        @4 finalize 1
        > judge False
        judged good
        > reply 1 good
        replied yes
        > closehost
        hostclosed
    """)

    assert made.job.state is JobState.DONE


def test_a_verdict_before_the_shutdown_is_not_waited_for_again() -> None:
    play("""
        finalize 1
        > judge False
        judged none
        > reply 1 no verdict
        replied yes
        shutdown
        > closehost
    """)


def test_the_verdict_is_asked_for_once_however_often_it_is_wanted() -> None:
    play("""
        finalize 1
        > judge False
        finalize 2
        judged good
        > reply 1 good
        > reply 2 good
        judged other
        finalize 3
        > reply 3 good
    """)


def test_what_goes_wrong_with_the_users_code_is_the_answer() -> None:
    play("""
        finalize 1
        > judge False
        failed broken
        > reply 1 broken
    """)


def test_a_verdict_that_cannot_be_delivered_ends_the_wait() -> None:
    script = """
        shutdown
        finalize 1
        > judge False
        judged good
        > reply 1 good
        replied no
    """
    assert play(script + "> closehost").job.state is JobState.CLOSING
    defective = play(script, variant="lost verdict waited for")
    assert defective.job.state is JobState.SERVING
    assert defective.job.next_at() == 10


def test_a_simulator_that_leaves_ends_the_wait_and_one_that_has_left_is_not_waited_for() -> None:
    play("""
        shutdown
        left
        > closehost
        left
    """)
    play("""
        left
        shutdown
        > closehost
    """)


def test_a_silent_simulator_is_waited_for_until_the_time_out() -> None:
    made = play("@5 shutdown")
    assert made.job.next_at() == 15
    made.run("""
        @14.9 wake
        @15 wake
        > closehost
        wake
    """)
    assert made.job.next_at() is None


def test_a_verdict_that_is_not_there_in_time_is_answered_with_an_error() -> None:
    play("""
        shutdown
        @9 finalize 1
        > judge False
        @10 wake
        > reply 1 no verdict came before the job's end
        > closehost
        judged good
        replied yes
        hostclosed
    """)


def test_a_session_that_does_not_close_in_time_is_told_of_all_the_same() -> None:
    play("""
        started s1 room
        > register s1
        started s2 other
        > host s2 other
        shutdown
        > close s1 JOB_SHUTDOWN
        > close s2 JOB_SHUTDOWN
        @10 wake
        > tell s1 JOB_SHUTDOWN the session did not close in time
        > tell s2 JOB_SHUTDOWN the session did not close in time
        > closehost s2
        > closehost
        closed s1
    """)


def test_a_job_is_done_when_the_hosts_of_its_sessions_are_closed_too() -> None:
    made = play("""
        started s1 other
        > host s1 other
        started s2 other
        > host s2 other
        closed s1
        > closehost s1
        started s1 other                   # again, while its first host is closing
        > host s1 other
        closed s1
        > closehost s1
        left
        delete room
        > close s2 COMPLETED
        closed s2
        > closehost s2
        > closehost
        hostclosed s1
        hostclosed
        hostclosed                         # it is closed
        hostclosed s2
    """)
    made.run("""
        hostclosed s1
        > delete room
    """)
    assert made.job.state is JobState.DONE


def test_too_late_and_without_a_simulation_there_is_no_verdict() -> None:
    play("""
        left
        shutdown
        > closehost
        finalize 1
        > reply 1 the job has shut down
        hostclosed
        finalize 2
        > reply 2 the job has shut down
    """)
    play(
        """
        finalize 1
        > reply 1 the job runs no simulation
        """,
        simulated=False,
    )


def test_under_a_simulation_the_jobs_room_goes_last_with_the_jobs_end_and_once() -> None:
    play("""
        started s1 room
        > register s1
        delete room COMPLETED
        > close s1 COMPLETED
        delete room
        closed s1
        finalize 1
        > judge False
        judged good
        > reply 1 good
        replied yes
        > closehost
        hostclosed
        > delete room
        delete room
    """)


def test_another_room_and_one_without_a_simulation_go_at_once_and_once() -> None:
    play("""
        delete other
        > delete other
        delete other
    """)
    play(
        """
        delete room
        > delete room
        shutdown
        > closehost
        hostclosed
        delete room
        """,
        simulated=False,
    )


def test_defect_a_shutdown_does_not_serve_its_simulator() -> None:
    play(
        """
        started s1 room
        > register s1
        shutdown
        > close s1 JOB_SHUTDOWN
        closed s1
        > closehost
        """,
        variant="shutdown at once",
    )


def test_defect_the_room_goes_before_the_verdict() -> None:
    play(
        """
        delete room
        > delete room
        """,
        variant="room deleted at once",
    )
