"""No sequence of losses, resumes, results, re-issues and returns of the path books twice, loses a booking, or sticks.

The parts' own machines drive each with a stand-in for the others; here they meet: see ``whole``.
"""

import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lab.live.protocol import closing
from lab.live.recovery import Policy, State
from lab.live.recovery.ledger import DEDUPE_WITHIN_S, Progress
from lab.live.session.profile import DEFAULT, PROFILES, OldCall, Profile
from lab.live.session.states import Detach
from tests.live.whole import End, Whole, Wire

REQUESTS = {
    "Book me the 3pm slot tomorrow, please.": "tomorrow 3pm",
    "Book tomorrow at three p.m.": "tomorrow 3pm",
    "Please reserve 9 am today.": "today 9am",
}
"""What is asked for, in words of several kinds, and the slot that is meant."""

TALK = ("Hi, can you hear me?", "What do I need to bring?", "Did you book it?", "Cancel that.")

YES = re.compile(r"\bis booked\b")

SETTLES_S = 45.0
"""All attempts end within 30 s, a close that waits for its answer in 10 s, a sentence in some 4 s."""

ANSWERS_S = 12.0
"""From a question to the end of its answer, behind one that is being given."""

SHORT = st.sampled_from([0.0, 0.02, 0.2, 0.6, 1.0, 1.7, 2.5, 4.0, 9.0])
LONG = st.sampled_from([31.0, 90.0, 485.0])

POLICIES = st.builds(
    Policy,
    parallel=st.booleans(),
    fallback=st.sampled_from([True, True, False]),
    close_old=st.sampled_from([True, True, False]),
    close_before_resume=st.sampled_from([True, True, False]),
    note=st.sampled_from([True, True, False]),
)

PROFILES_ = st.builds(
    lambda name, limit, settle_s: PROFILES[name].with_(concurrent_limit=limit, settle_s=settle_s),
    st.sampled_from(sorted(set(PROFILES) - {"slow-pongs"})),  # the wire answers pings, not the house
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([0.0, 1.0, 1.4]),
)


class Wholes(RuleBasedStateMachine):
    """The user, the network and the machines' owners are hypothesis's."""

    @initialize(
        profile=PROFILES_,
        policy=POLICIES,
        commit_s=st.sampled_from([0.0, 4.0, 7.0]),
        seed=st.integers(0, 99),
    )
    def begin(self, profile: Profile, policy: Policy, commit_s: float, seed: int) -> None:
        self.policy = policy
        self.whole = Whole(profile, policy, commit_s=commit_s, seed=seed)
        self.asked_for: list[str] = []
        self.failures = False

    # The user.

    @precondition(lambda self: self.whole.attached)
    @rule(text=st.sampled_from(sorted(REQUESTS)), then=SHORT)
    def request(self, text: str, then: float) -> None:
        self.asked_for.append(REQUESTS[text])
        self.whole.say(text)
        self.whole.advance(then)

    @precondition(lambda self: self.whole.attached)
    @rule(then=SHORT)
    def book(self, then: float) -> None:
        """The study's beginning: a request, and about when the call arrives something happens."""
        self.request(next(iter(REQUESTS)), 0.55)
        self.whole.advance(then)

    @precondition(lambda self: self.whole.attached)
    @rule(text=st.sampled_from(TALK), then=SHORT)
    def talk(self, text: str, then: float) -> None:
        self.whole.say(text)
        self.whole.advance(then)

    @precondition(lambda self: len(self.whole.wires) > 4)
    @rule()
    def close(self) -> None:
        self.whole.close()

    # The network.

    @precondition(lambda self: self.whole.attached)
    @rule(then=SHORT, address=st.sampled_from([False, False, False, True]))
    def cut(self, then: float, address: bool) -> None:
        """A silent loss: a hole, or the client has another address now."""
        wire = self.whole.live
        assert wire is not None
        wire.dark, wire.buried = True, address
        self.whole.advance(then)

    @rule(then=SHORT)
    def heal(self, then: float) -> None:
        self.whole.outage = False
        for wire in self.whole.wires.values():
            wire.heal(self.whole.now)
        self.whole.advance(then)

    @rule(outage=st.booleans())
    def reach(self, outage: bool) -> None:
        """Whether new connections pass."""
        self.whole.outage = outage

    @rule(then=SHORT)
    def black_out(self, then: float) -> None:
        """Nothing passes, on any connection."""
        self.whole.outage = True
        for wire in self.whole.wires.values():
            wire.dark = True
        self.whole.advance(then)

    @precondition(lambda self: self.whole.live is not None)
    @rule(then=SHORT)
    def reset(self, then: float) -> None:
        """A middlebox forgets the connection in use, which may have been dark before."""
        assert self.whole.live is not None
        self.whole.reset(self.whole.live)
        self.whole.advance(then)

    @precondition(lambda self: self.whole.attached)
    @rule(how=st.sampled_from([Detach.RST, Detach.FIN, Detach.CLOSE_FRAME]), then=SHORT)
    def drop(self, how: Detach, then: float) -> None:
        self.whole.drop(how)
        self.whole.advance(then)

    @precondition(lambda self: self.old_sockets())
    @rule(data=st.data())
    def end_an_old_socket(self, data: st.DataObject) -> None:
        self.whole.abort(data.draw(st.sampled_from(self.old_sockets())))

    @precondition(lambda self: self.unacknowledged())
    @rule(data=st.data())
    def servers_tcp_gives_up(self, data: st.DataObject) -> None:
        self.whole.give_up(data.draw(st.sampled_from(self.unacknowledged())))

    @precondition(lambda self: self.whole.attached)
    @rule(how=st.sampled_from([closing.DEADLINE, closing.ABORTED, closing.UNAVAILABLE]), then=SHORT)
    def server_closes(self, how: closing.Closing, then: float) -> None:
        for found in self.whole.house.status(now=self.whole.now).sessions:
            if found.connection == self.whole.recovery.connection and found.state == "attached":
                self.whole.take(self.whole.house.close(found.id, how, now=self.whole.now))
        self.whole.advance(then)

    # The backend and the clock.

    @rule()
    def fail_the_next_job(self) -> None:
        self.whole.fail_next = self.failures = True

    @rule(seconds=st.one_of(SHORT, SHORT, SHORT, LONG))
    def wait(self, seconds: float) -> None:
        self.whole.advance(seconds)

    def old_sockets(self) -> list[Wire]:
        """Those that the client has still and does not use."""
        using = self.whole.recovery.connection
        return [wire for wire in self.whole.wires.values() if wire.here and wire.ready and wire.number != using]

    def unacknowledged(self) -> list[Wire]:
        """Those into whose hole the server has sent something."""
        return [wire for wire in self.whole.wires.values() if wire.dark and wire.there and wire.down]

    # What must hold at every step.

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "whole"):
            check_bookings(self.whole)
            self.results_go_where_they_were_asked()
            self.the_recovery_is_somewhere()

    def results_go_where_they_were_asked(self) -> None:
        """What the server drops as nobody's was answered before, or cancelled while the result was on its way."""
        strange = {name for name in self.whole.ignored if name not in self.whole.cancelled | self.whole.heard_calls}
        assert not strange
        assert self.whole.answered <= self.whole.heard_calls

    def the_recovery_is_somewhere(self) -> None:
        whole, state = self.whole, self.whole.recovery.state
        if state is State.ATTACHED:
            assert whole.live is not None
            assert whole.live.here
        elif state not in {State.GIVEN_UP, State.CLOSED}:
            assert whole.recovery.next_at() is not None, "nothing leads out"

    # What must come of it.

    def teardown(self) -> None:
        if not hasattr(self, "whole"):
            return
        self.heal(SETTLES_S)
        check_bookings(self.whole)
        self.no_call_that_arrived_is_lost()
        self.tell()
        if self.whole.attached:
            self.the_server_agrees()
            self.the_user_is_told_the_truth()
        self.no_session_sticks()

    def tell(self) -> None:
        """For hypothesis's statistics: what the examples were about."""
        whole = self.whole
        event(f"ends {whole.recovery.state.value}")
        for adopted in sorted(whole.adopted):
            event(f"adopted: {adopted}")
        if whole.rows:
            event("booked")
        if len(whole.heard_calls) > len(whole.ledger.jobs):
            event("deduplicated")

    def no_call_that_arrived_is_lost(self) -> None:
        whole = self.whole
        assert all(job.progress is not Progress.PENDING for job in whole.ledger.jobs)
        done = [job.key for job in whole.ledger.jobs if job.progress is Progress.DONE]
        assert sorted(done) == sorted(key for key, _ in whole.rows)
        if whole.attached:
            assert whole.ledger.due() == ()
            assert whole.ledger.updates() == ()

    def the_server_agrees(self) -> None:
        sessions = self.whole.house.status(now=self.whole.now).sessions
        states = [found.state for found in sessions if found.connection == self.whole.recovery.connection]
        assert states == ["attached"]

    def the_user_is_told_the_truth(self) -> None:
        whole, before = self.whole, len(self.whole.said)
        whole.say("Did you book it?")
        whole.advance(ANSWERS_S)
        if not whole.attached:  # a server that ends connections by its clock did
            return
        assert len(whole.said) > before, "no answer"
        answer, booked = whole.said[-1], {key for key, _ in whole.rows}
        assert not YES.search(answer) or booked, f"{answer!r}, and nothing is booked"
        if not self.model_may_not_know():
            event("the answer is checked")
            assert bool(YES.search(answer)) is bool(booked), answer

    def model_may_not_know(self) -> bool:
        """What nobody can mend: the model speaks of its last booking only, and the wire may have lost its word."""
        whole = self.whole
        lost_on_the_way = whole.called != whole.heard_calls or whole.cancelled != whole.heard_cancelled
        ignores = self.whole.house.profile.old_call is OldCall.IGNORE
        several = len(set(self.asked_for)) > 1
        kept_from_it = ignores or not self.policy.note or bool(whole.untold)
        return several or lost_on_the_way or kept_from_it or self.failures

    def no_session_sticks(self) -> None:
        """With the path back only the session in use is locked, and such as nobody can tell the server of."""
        whole = self.whole
        for found in whole.house.status(now=whole.now).sessions:
            if found.locked and found.connection != whole.recovery.connection:
                event(f"left locked: {found.state}")
                held = found.state == "held"
                assert found.id in whole.unsigned if held else self.is_mute(found.connection), "locked without a reason"
                assert found.closes_in_s is not None
        whole.close()
        whole.advance(SETTLES_S)
        self.whoever_is_free_is_resumed()
        whole.advance(whole.house.profile.silence_close_s + whole.house.profile.handle_valid_s)
        assert whole.house.status(now=whole.now).counted == 0
        assert whole.house.next_at() is None

    def is_mute(self, number: int | None) -> bool:
        """Nobody can tell the server: its client's address is gone, or the socket is and its reset was lost."""
        wire = self.whole.wires[number or 0]
        return wire.buried or (not wire.here and wire.there and not wire.up and not wire.down)

    def whoever_is_free_is_resumed(self) -> None:
        whole = self.whole
        for number, (handle, session) in enumerate(dict(reversed(whole.names.items())).items(), start=10_000):
            states = {found.id: found.state for found in whole.house.status(now=whole.now).sessions}
            full = whole.house.profile.concurrent_limit is not None
            if states.get(session) == "free" and not full:
                whole.dial(number, handle)
                whole.advance(1.0)
                assert whole.wires[number].ready, "free, and not to be resumed"
                whole.wires[number].up.append((whole.now, End()))
                whole.advance(SETTLES_S)


def check_bookings(whole: Whole) -> None:
    """Nothing is booked twice within the time in which a booking answers for another one."""
    for key in {key for key, _ in whole.rows}:
        times = [at for each, at in whole.rows if each == key]
        assert all(later - earlier > DEDUPE_WITHIN_S for earlier, later in pairwise(times)), "booked twice"


Wholes.TestCase.settings = settings(
    max_examples=100, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWhole = Wholes.TestCase


def asked(whole: Whole) -> str:
    """The answer to the question whether it is booked."""
    whole.say("Did you book it?")
    whole.advance(ANSWERS_S)
    return whole.said[-1]


def test_without_deduplication_a_call_that_is_issued_anew_books_twice_and_the_machine_notices() -> None:
    whole = Whole(DEFAULT, Policy(note=False, dedupe=False), commit_s=4.0, seed=1)
    whole.say("Book me the 3pm slot tomorrow, please.")
    whole.advance(1.0)
    whole.wires[0].dark = True
    whole.advance(30.0)

    assert len(whole.heard_calls) == 2
    with pytest.raises(AssertionError, match="booked twice"):
        check_bookings(whole)


def test_a_result_that_went_into_the_hole_is_told_after_the_resume() -> None:
    whole = Whole(DEFAULT, Policy(), commit_s=2.0, seed=1)
    whole.say("Book me the 3pm slot tomorrow, please.")
    whole.advance(2.0)
    whole.wires[0].dark = True
    whole.advance(1.5)
    whole.reset(whole.wires[0])
    whole.advance(8.0)

    assert whole.adopted == {"resumed"}
    assert whole.answered == whole.heard_calls
    assert whole.ignored == set()
    assert asked(whole).startswith("Yes, the 3 pm slot tomorrow is booked.")


def test_who_interrupts_the_model_while_it_books_is_told_in_the_end_that_it_is_booked() -> None:
    whole = Whole(DEFAULT, Policy(), commit_s=7.0, seed=1)
    whole.say("Book me the 3pm slot tomorrow, please.")
    whole.advance(1.0)
    whole.say("What do I need to bring?")
    whole.advance(2.5)
    whole.say("Hi, can you hear me?")
    whole.advance(20.0)

    assert whole.heard_cancelled == whole.heard_calls
    assert [key for key, _ in whole.rows] == ['book_slot(slot="tomorrow 15:00")']
    assert asked(whole).startswith("Yes, the 3 pm slot tomorrow is booked.")


def lost_call() -> Whole:
    """The model's call went into a hole: the server believes that it was made, the client never saw it."""
    whole = Whole(DEFAULT, Policy(), commit_s=4.0, seed=1)
    whole.say("Book me the 3pm slot tomorrow, please.")
    whole.advance(0.3)
    whole.wires[0].dark = True
    whole.advance(1.0)
    assert whole.called
    assert not whole.heard_calls
    return whole


def test_a_call_that_was_lost_on_the_way_is_made_again_by_a_new_session() -> None:
    whole = lost_call()
    whole.advance(20.0)

    assert whole.adopted == {"new"}
    assert len(whole.rows) == 1
    assert asked(whole).startswith("Yes, the 3 pm slot tomorrow is booked.")


def test_a_call_that_was_lost_on_the_way_is_the_one_thing_that_a_resume_does_not_mend() -> None:
    """The study's server repeats no call, and a client cannot miss what it never saw: the model waits for ever."""
    whole = lost_call()
    whole.reset(whole.wires[0])
    whole.advance(20.0)

    assert whole.adopted == {"resumed"}
    assert whole.rows == []
    assert asked(whole) == "I'm booking the 3 pm slot tomorrow for you now."
