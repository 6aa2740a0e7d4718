from lab.control.heartbeat import Heartbeat, Pulse


def test_nothing_is_due_before_the_first_heartbeat() -> None:
    beat = Heartbeat(2.0)

    assert (beat.pulse, beat.due_at, beat.check(1e9)) == (Pulse.WAITING, None, False)


def test_an_owner_who_falls_silent_is_found_dead_once() -> None:
    beat = Heartbeat(2.0)
    beat.beat(10.0)

    assert not beat.check(11.99)
    assert beat.check(12.0)
    assert not beat.check(13.0)
    assert beat.pulse is Pulse.LOST


def test_the_next_heartbeat_arms_the_switch_again() -> None:
    beat = Heartbeat(2.0)
    beat.beat(10.0)
    beat.check(12.0)
    beat.beat(20.0)

    assert (beat.pulse, beat.due_at) == (Pulse.ALIVE, 22.0)


def test_without_a_switch_heartbeats_change_nothing() -> None:
    beat = Heartbeat(None)
    beat.beat(10.0)

    assert (beat.pulse, beat.due_at, beat.check(1e9)) == (Pulse.OFF, None, False)
