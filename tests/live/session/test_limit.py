"""Who is let in, and that a refusal does not tell more than it must."""

import pytest

from lab.live.protocol.closing import EXHAUSTED, INTERNAL_ERROR, INVALID_ARGUMENT
from lab.live.session.limit import Refusal, decide, full, sentence
from lab.live.session.profile import DEFAULT, find
from lab.live.session.states import State

ONE = DEFAULT.with_(concurrent_limit=1)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.ATTACHED, Refusal.ATTACHED),
        (State.HELD, Refusal.HELD),
        (State.SETTLING, Refusal.SETTLING),
        (State.FREE, None),
        (State.DEAD, Refusal.DEAD),
        (State.ENDED, Refusal.UNKNOWN),
        (None, Refusal.UNKNOWN),
    ],
)
def test_a_resume_is_decided_by_the_sessions_state(state: State | None, expected: Refusal | None) -> None:
    assert decide(DEFAULT, resumes=True, state=state, counted=99) is expected


def test_a_new_session_is_refused_by_the_limit_alone() -> None:
    assert decide(DEFAULT, resumes=False, state=None, counted=10_000) is None
    assert decide(ONE, resumes=False, state=None, counted=0) is None
    assert decide(ONE, resumes=False, state=None, counted=1) is Refusal.LIMIT


def test_a_resume_needs_a_place_too_and_its_lock_comes_first() -> None:
    assert decide(ONE, resumes=True, state=State.FREE, counted=1) is Refusal.LIMIT
    assert decide(ONE, resumes=True, state=State.ATTACHED, counted=1) is Refusal.ATTACHED
    assert decide(ONE, resumes=True, state=None, counted=1) is Refusal.UNKNOWN


def test_full_is_reached_not_passed() -> None:
    assert [full(DEFAULT.with_(concurrent_limit=3), counted) for counted in (2, 3, 4)] == [False, True, True]


def test_on_the_wire_nothing_tells_a_locked_handle_from_one_that_names_nothing() -> None:
    assert {sentence(cause, DEFAULT) for cause in Refusal if cause is not Refusal.LIMIT} == {INTERNAL_ERROR}


def test_a_profile_may_tell_dead_handles_from_locked_ones_but_not_from_unknown_ones() -> None:
    told = {cause: sentence(cause, find("dead-handle-1007")) for cause in Refusal}

    assert told[Refusal.DEAD] == told[Refusal.UNKNOWN] == INVALID_ARGUMENT
    assert told[Refusal.ATTACHED] == told[Refusal.HELD] == told[Refusal.SETTLING] == INTERNAL_ERROR
    assert told[Refusal.LIMIT] == EXHAUSTED
