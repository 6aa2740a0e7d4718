"""The lives of a host and of a job, as two tables.

A host serves one transport, with a session or without, and ends in two steps, so that what it said last gets out::

    EMPTY      serves, and no session is attached: requests are answered with an error.
    ATTACHED   serves, and requests go to the session.
    DRAINING   is closing: nothing new is accepted, what is queued is written, for 3 s at most.
    CLOSED     the transport is gone.

A job owns a host. Its shutdown ends the sessions first, so that their end is told while somebody can tell it, and under
a simulation it goes on serving until the simulator has what it wants::

    RUNNING    sessions come and go.
    ENDING     is shutting down: its sessions are being closed.
    SERVING    its sessions are closed, and the simulator may still ask for the verdict.
    CLOSING    the host is draining, and what sessions of other rooms have of their own.
    DONE       what was to be done last is done.

A pair that is not in a table cannot happen, and ``after`` says so.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar


class HostState(Enum):
    """Where a host is in its life."""

    EMPTY = "empty"
    ATTACHED = "attached"
    DRAINING = "draining"
    CLOSED = "closed"


class HostEvent(Enum):
    """What can happen to a host."""

    REGISTERED = "registered"
    """A session came; it replaces an attached one."""

    DETACHED = "detached"
    """The attached session closed, or was taken away."""

    CLOSE = "close"
    """Its owner ends it, or nothing that comes can be read any more."""

    FLUSHED = "flushed"
    """What was queued is written."""

    LATE = "late"
    """It is not, and the time for it is over."""

    LOST = "lost"
    """The transport is gone."""


class JobState(Enum):
    """Where a job is in its life."""

    RUNNING = "running"
    ENDING = "ending"
    SERVING = "serving"
    CLOSING = "closing"
    DONE = "done"


class JobEvent(Enum):
    """What can happen to a job."""

    SHUTDOWN = "shutdown"

    SESSIONS_CLOSED = "sessions closed"
    """The last session is closed, and nobody is waited for."""

    SIMULATOR_DUE = "simulator due"
    """The last session is closed, and the simulator has not asked for its verdict."""

    FINALIZED = "finalized"
    """The simulator has its verdict, or cannot be given it."""

    LEFT = "left"
    """The simulator is gone."""

    LATE = "late"
    """``session_end_timeout_s`` is over."""

    HOSTS_CLOSED = "hosts closed"
    """The job's host and each session's own are closed."""


HOST: Mapping[HostState, Mapping[HostEvent, HostState]] = MappingProxyType(
    {
        HostState.EMPTY: {
            HostEvent.REGISTERED: HostState.ATTACHED,
            HostEvent.CLOSE: HostState.DRAINING,
            HostEvent.LOST: HostState.CLOSED,
        },
        HostState.ATTACHED: {
            HostEvent.REGISTERED: HostState.ATTACHED,
            HostEvent.DETACHED: HostState.EMPTY,
            HostEvent.CLOSE: HostState.DRAINING,
            HostEvent.LOST: HostState.CLOSED,
        },
        HostState.DRAINING: {
            HostEvent.FLUSHED: HostState.CLOSED,
            HostEvent.LATE: HostState.CLOSED,
            HostEvent.LOST: HostState.CLOSED,
        },
        HostState.CLOSED: {},
    }
)
"""The host's state after an event, for every pair that can happen; it begins EMPTY."""

JOB: Mapping[JobState, Mapping[JobEvent, JobState]] = MappingProxyType(
    {
        JobState.RUNNING: {JobEvent.SHUTDOWN: JobState.ENDING},
        JobState.ENDING: {
            JobEvent.SESSIONS_CLOSED: JobState.CLOSING,
            JobEvent.SIMULATOR_DUE: JobState.SERVING,
            JobEvent.LATE: JobState.CLOSING,
        },
        JobState.SERVING: {
            JobEvent.FINALIZED: JobState.CLOSING,
            JobEvent.LEFT: JobState.CLOSING,
            JobEvent.LATE: JobState.CLOSING,
        },
        JobState.CLOSING: {JobEvent.HOSTS_CLOSED: JobState.DONE},
        JobState.DONE: {},
    }
)
"""The job's state after an event, for every pair that can happen; it begins RUNNING."""


class ImpossibleEvent(Exception):
    """A defect of the lab: the table has no such pair."""

    def __init__(self, state: Enum, event: Enum) -> None:
        super().__init__(state, event)
        self.state = state
        self.event = event

    def __str__(self) -> str:
        return f"What is {self.state.value} cannot meet the event {self.event.value}."


State = TypeVar("State", HostState, JobState)
Event = TypeVar("Event", HostEvent, JobEvent)


def after(table: Mapping[State, Mapping[Event, State]], state: State, event: Event) -> State:
    """The state after an event.

    Raises:
        ImpossibleEvent: it cannot happen in this state.
    """
    try:
        return table[state][event]
    except KeyError:
        raise ImpossibleEvent(state, event) from None
