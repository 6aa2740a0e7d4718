"""The tables of a host's and a job's life: every cell, and that each has an end."""

import itertools
from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from lab.host.machine.states import HOST, JOB, HostEvent, HostState, ImpossibleEvent, JobEvent, JobState, after

HOST_ROWS = """
             EMPTY     ATTACHED  DRAINING  CLOSED
REGISTERED   ATTACHED  ATTACHED  -         -
DETACHED     -         EMPTY     -         -
CLOSE        DRAINING  DRAINING  -         -
FLUSHED      -         -         CLOSED    -
LATE         -         -         CLOSED    -
LOST         CLOSED    CLOSED    CLOSED    -
"""

JOB_ROWS = """
                 RUNNING  ENDING   SERVING  CLOSING  DONE
SHUTDOWN         ENDING   -        -        -        -
SESSIONS_CLOSED  -        CLOSING  -        -        -
SIMULATOR_DUE    -        SERVING  -        -        -
FINALIZED        -        -        CLOSING  -        -
LEFT             -        -        CLOSING  -        -
LATE             -        CLOSING  CLOSING  -        -
HOSTS_CLOSED     -        -        -        DONE     -
"""


def cells(rows: str, states: Any, events: Any) -> list[tuple[Enum, Enum, Enum | None]]:
    head, *lines = [line.split() for line in rows.strip().splitlines()]
    found = [
        (states[state], events[event], None if cell == "-" else states[cell])
        for event, *line in lines
        for state, cell in zip(head, line, strict=True)
    ]
    assert {(state, event) for state, event, _ in found} == set(itertools.product(states, events))
    return found


CELLS = [
    *((HOST, *cell) for cell in cells(HOST_ROWS, HostState, HostEvent)),
    *((JOB, *cell) for cell in cells(JOB_ROWS, JobState, JobEvent)),
]


@pytest.mark.parametrize(("table", "state", "event", "expected"), CELLS)
def test_every_pair_leads_where_the_table_says_or_is_impossible(
    table: Any, state: Enum, event: Enum, expected: Enum | None
) -> None:
    if expected is not None:
        assert after(table, state, event) is expected
        return
    with pytest.raises(ImpossibleEvent, match=f"is {state.value} cannot meet the event {event.value}"):
        after(table, state, event)


ENDS = [(HOST, HostState.EMPTY, HostState.CLOSED), (JOB, JobState.RUNNING, JobState.DONE)]


@pytest.mark.parametrize(("table", "first", "last"), ENDS)
def test_every_state_is_reached_and_from_every_state_the_end(
    table: Mapping[Enum, Mapping[Enum, Enum]], first: Enum, last: Enum
) -> None:
    def reached(start: Enum) -> set[Enum]:
        seen, new = {start}, {start}
        while new:
            new = {to for state in new for to in table[state].values()} - seen
            seen |= new
        return seen

    assert reached(first) == set(table)
    assert all(last in reached(state) for state in table)
