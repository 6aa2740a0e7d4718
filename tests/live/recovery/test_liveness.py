"""A loss is noticed in 1.5 to 2.0 s; silence, slowness and a loop that stood still are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.recovery.liveness import By, Loss, Patience, Watchdog

BEGIN = 100.0


class Link:
    """A connection watched as a shell would: pings at their time, pongs and frames as the case says."""

    def __init__(self, pong_s: float | None = 0.02, patience: Patience | None = None) -> None:
        self.dog = Watchdog(patience, now=BEGIN)
        self.now = BEGIN
        self.pong_s = pong_s
        self.pings: list[float] = []
        self.coming: list[tuple[float, float]] = []
        """When a pong comes, and the ping that it answers."""

    def run(self, seconds: float) -> Loss | None:
        """Let time pass until then, or until a loss."""
        until = self.now + seconds
        while True:
            at, sent_at = min([*self.coming, (self.dog.next_at(), -1.0)])
            if at > until:
                self.now = until
                return None
            self.now = at
            if sent_at >= 0:
                self.coming.remove((at, sent_at))
                self.dog.pong(sent_at, now=at)
                continue
            if self.dog.ping_due(now=at):
                self.pings.append(at)
                self.dog.pinged(now=at)
                if self.pong_s is not None:
                    self.coming.append((max([at + self.pong_s, *(each for each, _ in self.coming)]), at))
            if (loss := self.dog.lost(now=at)) is not None:
                return loss


def test_a_ping_goes_every_half_second_from_the_beginning() -> None:
    link = Link()

    assert link.run(2.0) is None
    assert link.pings == [BEGIN, BEGIN + 0.5, BEGIN + 1.0, BEGIN + 1.5, BEGIN + 2.0]


def test_a_ping_that_was_late_is_not_made_up_for() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pinged(now=BEGIN + 0.1)
    assert dog.next_at() == BEGIN + 0.5
    dog.pinged(now=BEGIN + 3)
    assert not dog.ping_due(now=BEGIN + 3.4)
    assert dog.ping_due(now=BEGIN + 3.5)


def test_a_healthy_link_may_be_silent_for_an_hour() -> None:
    assert Link().run(3600) is None


@pytest.mark.parametrize("into_the_interval_s", [0.03, 0.2, 0.499])
def test_a_loss_is_noticed_within_one_and_a_half_to_two_seconds(into_the_interval_s: float) -> None:
    link = Link()
    link.run(10 + into_the_interval_s)
    cut_at, link.pong_s = link.now, None

    loss = link.run(10)
    assert loss is not None
    assert 1.5 <= link.now - cut_at <= 2.02, "and the pong's own flight"
    assert loss.by is By.SILENCE
    assert loss.silent_s == pytest.approx(2.0)


def test_frames_alone_keep_a_link_alive() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN + 0.01)
    for step in range(1, 20):
        dog.frame(now=BEGIN + step)
        assert dog.lost(now=BEGIN + step + 1) is None
    assert dog.lost(now=BEGIN + 21) == Loss(2.0, By.SILENCE)


def test_a_frame_that_is_told_late_takes_nothing_back() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN + 0.01)
    dog.frame(now=BEGIN + 5)
    dog.frame(now=BEGIN + 1)

    assert dog.lost(now=BEGIN + 6.9) is None
    assert dog.lost(now=BEGIN + 7) is not None


@given(st.floats(5, 20), st.lists(st.floats(0.001, 0.6), min_size=1, max_size=9))
def test_any_loss_of_a_prompt_server_is_noticed_in_time(after_s: float, pongs_s: list[float]) -> None:
    link = Link()
    for pong_s in pongs_s:
        link.pong_s = pong_s
        assert link.run(after_s / len(pongs_s)) is None
    cut_at, link.pong_s, link.coming = link.now, None, []

    assert link.run(10) is not None
    assert 1.5 - max(pongs_s) - 0.001 <= link.now - cut_at <= 2.001


@given(st.lists(st.floats(8, 30), min_size=1, max_size=20))
def test_pongs_that_take_any_time_between_8_and_30_seconds_are_no_loss(delays: list[float]) -> None:
    link = Link()
    for delay in delays:
        link.pong_s = delay
        assert link.run(3.7) is None
    assert link.run(60) is None


@pytest.mark.parametrize("delays", [(8.0, 30.0), (30.0, 8.0), (8.0, 8.0, 8.0, 30.0)])
def test_pongs_that_take_8_to_30_seconds_are_no_loss(delays: tuple[float, ...]) -> None:
    link = Link(pong_s=delays[0])
    for delay in delays:
        link.pong_s = delay
        assert link.run(70) is None


def test_twice_the_slowest_pong_would_be_too_short() -> None:
    link = Link(pong_s=8.0, patience=Patience(slow_factor=2.0))
    assert link.run(70) is None
    link.pong_s = 30.0

    assert link.run(70) is not None


def test_with_slow_pongs_the_kernel_tells_of_a_loss_in_time() -> None:
    link = Link(pong_s=20.0)
    assert link.run(70.1) is None
    link.coming, link.pong_s = [], None
    link.dog.unacknowledged(link.now)
    cut_at = link.now

    assert link.run(30) is not None
    assert link.now - cut_at == pytest.approx(2.0)


def test_octets_that_are_unacknowledged_for_less_or_acknowledged_at_last_are_no_loss() -> None:
    dog = Watchdog(now=BEGIN)
    dog.unacknowledged(BEGIN + 5)

    assert dog.lost(now=BEGIN + 6.9) is None
    assert dog.lost(now=BEGIN + 7) == Loss(7.0, By.UNACKNOWLEDGED)
    dog.unacknowledged(None)
    assert dog.lost(now=BEGIN + 30) is None


def test_what_still_comes_in_outweighs_unacknowledged_octets() -> None:
    dog = Watchdog(now=BEGIN)
    dog.unacknowledged(BEGIN)
    dog.frame(now=BEGIN + 1.5)

    assert dog.lost(now=BEGIN + 3.4) is None


def test_before_the_first_pong_patience_is_long_but_not_endless() -> None:
    link = Link(pong_s=None)

    loss = link.run(100)
    assert loss == Loss(60.0, By.SILENCE)


def test_a_slow_pong_is_forgotten_after_a_minute_of_fast_ones() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN + 1.5)
    assert dog.patience_s == 4.5
    dog.pong(BEGIN + 61.4, now=BEGIN + 61.5)
    assert dog.slowest_pong_s == 1.5
    dog.pong(BEGIN + 61.5, now=BEGIN + 61.6)
    assert dog.patience_s == 2.0


@given(st.lists(st.tuples(st.floats(0.1, 30), st.floats(0, 10)), min_size=1))
def test_the_slowest_pong_is_that_of_the_last_minute(pongs: list[tuple[float, float]]) -> None:
    dog, now, came = Watchdog(now=BEGIN), BEGIN, list[tuple[float, float]]()
    for after_s, took_s in pongs:
        now += after_s
        dog.pong(now - took_s, now=now)
        came.append((now, now - (now - took_s)))

        assert dog.slowest_pong_s == max(took for at, took in came if at >= now - Patience().memory_s)


def test_a_loop_that_stood_still_lets_its_reader_read_first() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN + 0.01)
    dog.pinged(now=BEGIN)
    assert dog.next_at() == BEGIN + 0.5

    assert dog.lost(now=BEGIN + 5) is None, "4.5 s late"
    dog.frame(now=BEGIN + 5.001)
    assert dog.lost(now=BEGIN + 5.3) is None
    assert dog.lost(now=BEGIN + 7.001) is not None


def test_a_loop_that_stood_still_hides_no_loss() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN + 0.01)
    dog.pinged(now=BEGIN)
    dog.next_at()
    dog.lost(now=BEGIN + 5)
    dog.pinged(now=BEGIN + 5)

    assert dog.next_at() == BEGIN + 5.25
    assert dog.lost(now=BEGIN + 5.24) is None
    loss = dog.lost(now=BEGIN + 5.9)
    assert loss is not None, "late again, but once is enough"
    assert loss.silent_s == pytest.approx(5.89)


def test_a_look_that_is_a_little_late_judges() -> None:
    dog = Watchdog(now=BEGIN)
    dog.pong(BEGIN, now=BEGIN)
    dog.pinged(now=BEGIN + 1.6)
    assert dog.next_at() == BEGIN + 2

    assert dog.lost(now=BEGIN + 2.2) is not None
