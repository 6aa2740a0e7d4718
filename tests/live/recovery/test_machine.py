"""No sequence of drops, answers, results, re-issues, returns of the path and closes breaks a promise."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lab.live.recovery.policy import Policy
from tests.live.recovery.world import World

SLOTS = st.sampled_from(["tomorrow 3pm", "tomorrow at 3pm", "today 9am", "monday noon"])

POLICIES = st.builds(
    Policy,
    parallel=st.booleans(),
    fallback=st.booleans(),
    close_old=st.booleans(),
    close_before_resume=st.booleans(),
    max_attempts=st.integers(2, 9),
    window_s=st.sampled_from([0.0, 2.0, 4.0]),
    give_up_s=st.sampled_from([4.0, 9.0, 30.0]),
    attempt_s=st.sampled_from([0.7, 3.0, 10.0]),
    settled_s=st.sampled_from([0.0, 2.0, 10.0]),
)

SECONDS = st.sampled_from([0.0, 0.01, 0.3, 0.56, 0.56, 1.0, 1.0, 2.0, 4.0, 11.0])

FEW = settings(max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


class Losing(RuleBasedStateMachine):
    """A silent talk on a bad network; the world checks at every step."""

    world: World

    @initialize(policy=POLICIES)
    def begin(self, policy: Policy) -> None:
        self.world = World(policy)

    @rule(seconds=SECONDS)
    def advance(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def name(self) -> None:
        self.world.name()

    @precondition(lambda self: self.world.live is not None)
    @rule(gone=st.booleans())
    def lose(self, gone: bool) -> None:
        self.world.lose(gone=gone)

    @precondition(lambda self: self.world.unanswered())
    @rule(data=st.data())
    def accept(self, data: st.DataObject) -> None:
        self.world.accept(data.draw(st.sampled_from(self.world.unanswered())))

    @precondition(lambda self: self.world.unanswered())
    @rule(data=st.data(), code=st.sampled_from([1011, 1011, 1011, 1008, 1007]))
    def refuse(self, data: st.DataObject, code: int) -> None:
        self.world.refuse(data.draw(st.sampled_from(self.world.unanswered())), code)

    @precondition(lambda self: self.world.unanswered())
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        self.world.fail(data.draw(st.sampled_from(self.world.unanswered())))

    @precondition(lambda self: self.world.lost_links)
    @rule(data=st.data())
    def path_back(self, data: st.DataObject) -> None:
        self.world.path_back(data.draw(st.sampled_from(sorted(self.world.lost_links, reverse=True))))

    @precondition(lambda self: self.world.lost_links)
    @rule(data=st.data(), echoed=st.booleans())
    def old_closed(self, data: st.DataObject, echoed: bool) -> None:
        self.world.old_closed(data.draw(st.sampled_from(sorted(self.world.lost_links, reverse=True))), echoed=echoed)

    @precondition(lambda self: len(self.world.links) > 6)
    @rule()
    def close(self) -> None:
        self.world.close()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.conclude()


class Talking(Losing):
    """The same with a model that calls, repeats and re-issues, and a backend that takes its time."""

    @rule(seconds=st.sampled_from([301.0, 601.0]))
    def wait_long(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(slot=SLOTS, again=st.one_of(st.none(), st.integers(0, 2)))
    def ask(self, slot: str, again: int | None) -> None:
        self.world.ask(slot, again=again)

    @precondition(lambda self: self.world.pending())
    @rule(data=st.data(), failed=st.sampled_from([False, False, True]))
    def finish(self, data: st.DataObject, failed: bool) -> None:
        self.world.finish(data.draw(st.sampled_from(self.world.pending())), failed=failed)

    @rule()
    def pong(self) -> None:
        self.world.pong()

    @precondition(lambda self: self.world.live is not None)
    @rule()
    def cut(self) -> None:
        assert self.world.live is not None
        self.world.live.dark = True

    @invariant()
    def booked_once(self) -> None:
        if hasattr(self, "world"):
            self.world.check_bookings()


Losing.TestCase.settings = FEW
Talking.TestCase.settings = FEW

TestLosing = Losing.TestCase
TestTalking = Talking.TestCase


def test_the_world_notices_a_double_booking() -> None:
    """The invariant can fail: without deduplication it does."""
    world = World(Policy())
    world.ledger._dedupe = False
    world.ask("tomorrow 3pm")
    world.ask("tomorrow at 3pm")
    for job in world.pending():
        world.finish(job)

    with pytest.raises(AssertionError, match="booked twice"):
        world.check_bookings()
