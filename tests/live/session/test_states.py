"""The table of a session's life: every cell of it, and what a connection's end means."""

import itertools

import pytest

from lab.live.session.states import (
    LOCKED,
    OVER,
    TRANSITIONS,
    Detach,
    Event,
    ImpossibleEvent,
    State,
    after,
    departure,
)

ROWS = """
              ATTACHED  HELD   SETTLING  FREE      DEAD   ENDED
ATTACH        -         -      -         ATTACHED  -      -
LEFT_IDLE     SETTLING  -      -         -         -      -
LEFT_SPEAKING FREE      -      -         -         -      -
LEFT_FOR_RESUME FREE    -      -         -         -      -
LEFT_UNNAMED  ENDED     -      -         -         -      -
ANSWERED      FREE      -      -         -         -      -
LOST          HELD      -      -         -         -      -
SETTLED       -         -      FREE      -         -      -
SILENT        DEAD      DEAD   -         -         -      -
EXPIRED       -         -      -         ENDED     -      -
DISMISSED     ENDED     ENDED  ENDED     ENDED     ENDED  -
"""

HEAD, *LINES = [line.split() for line in ROWS.strip().splitlines()]
CELLS = [
    (State[state], Event[event], None if cell == "-" else State[cell])
    for event, *cells in LINES
    for state, cell in zip(HEAD, cells, strict=True)
]


def test_the_tests_table_has_every_pair() -> None:
    assert {(state, event) for state, event, _ in CELLS} == set(itertools.product(State, Event))


@pytest.mark.parametrize(("state", "event", "expected"), CELLS)
def test_every_pair_leads_where_the_table_says_or_is_impossible(
    state: State, event: Event, expected: State | None
) -> None:
    if expected is not None:
        assert after(state, event) is expected
        return
    with pytest.raises(ImpossibleEvent, match=f"{state.value} cannot meet the event {event.value}"):
        after(state, event)


def test_every_locked_state_has_a_way_out_by_the_servers_own_clock() -> None:
    clocks = {Event.SETTLED, Event.SILENT, Event.EXPIRED}

    for state in LOCKED | {State.FREE}:
        assert clocks & set(TRANSITIONS[state]), state


def test_from_over_only_over_is_reached_and_every_state_is_reached_from_free() -> None:
    assert all(set(TRANSITIONS[state].values()) <= OVER for state in OVER)
    seen, new = {State.FREE}, {State.FREE}
    while new:
        new = {to for state in new for to in TRANSITIONS[state].values()} - seen
        seen |= new
    assert seen == set(State)


def meant(how: Detach, **facts: bool) -> Event:
    return departure(how, **{"closed_by_server": False, "named": True, "speaking": False, "awaited": False, **facts})


SEEN = (Detach.CLOSE_FRAME, Detach.FIN, Detach.RST)


@pytest.mark.parametrize("facts", list(itertools.product([False, True], repeat=4)))
@pytest.mark.parametrize("how", [Detach.TCP_TIMEOUT, Detach.NOTHING])
def test_without_a_sign_from_the_client_a_session_is_lost_whatever_else_holds(
    how: Detach, facts: tuple[bool, bool, bool, bool]
) -> None:
    names = ("closed_by_server", "named", "speaking", "awaited")

    assert meant(how, **dict(zip(names, facts, strict=True))) is Event.LOST


@pytest.mark.parametrize("how", SEEN)
def test_a_seen_end_is_idle_unless_something_else_holds(how: Detach) -> None:
    assert meant(how) is Event.LEFT_IDLE
    assert meant(how, speaking=True, awaited=True) is Event.LEFT_SPEAKING
    assert meant(how, closed_by_server=True, speaking=True, awaited=True) is Event.ANSWERED
    assert meant(how, named=False, closed_by_server=True, speaking=True, awaited=True) is Event.LEFT_UNNAMED


def test_only_a_close_frame_frees_a_session_that_somebody_waits_for() -> None:
    assert [meant(how, awaited=True) for how in SEEN] == [Event.LEFT_FOR_RESUME, Event.LEFT_IDLE, Event.LEFT_IDLE]
