"""The life of a session, as one table.

A session is not its connection: the lock that refuses a resume is a state of the session, and neither a dead path nor
a socket that is gone opens it. The study's sessions fit six states::

    ATTACHED   a connection has it, as far as the server knows. Every resume is refused (study: 450 of 450).
    HELD       its connection is gone and nobody said so: the server's TCP gave up, or its close was never answered.
               Locked all the same (study: refused long after the last retransmission).
    SETTLING   the client's end was seen while the model was idle. Locked for a moment (study: refused at once, accepted
               about 1.5 s later; the length is the profile's ``settle_s``).
    FREE       no connection, and the next resume is accepted.
    DEAD       the server ended it after its silence; its handle is refused for good.
    ENDED      over, and nobody can ask for it: it had no handle, its handle is too old, or it was dismissed.

Three observations look as if they disagreed: an idle close with 1000 settles (P2), an idle abort settles (R1), yet a
close with 1000 after a freeze frees at once (N1, B3: the next attempt, started right away, is accepted). What differs
is that resumes had been refused in the meantime. The lab's reading, which the study neither says nor contradicts: a
session that somebody is waiting for does not settle when its client closes it. FIN and RST settle in either case,
because the study never saw one after a refusal.

What a connection's end means is decided by ``departure``; the table says what follows. A pair that is not in the
table cannot happen, and ``after`` says so.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class State(Enum):
    """Where a session is in its life."""

    ATTACHED = "attached"
    HELD = "held"
    SETTLING = "settling"
    FREE = "free"
    DEAD = "dead"
    ENDED = "ended"


class Detach(Enum):
    """How a connection ended, as its server saw it."""

    CLOSE_FRAME = "close frame"
    """The client's close, or its answer to the server's."""

    FIN = "FIN"
    RST = "RST"
    TCP_TIMEOUT = "TCP timeout"
    """The server's TCP gave up retransmitting (ETIMEDOUT)."""

    NOTHING = "nothing"
    """The server dropped it without a sign from the client, such as an unanswered close."""


class Event(Enum):
    """What can happen to a session."""

    ATTACH = "attach"
    """A setup with its handle was accepted."""

    LEFT_IDLE = "left idle"
    """The client's end was seen, and the model was idle."""

    LEFT_SPEAKING = "left speaking"
    """The client's end was seen in mid-sentence."""

    LEFT_FOR_RESUME = "left for resume"
    """A close frame came, and a resume had been refused because of this connection."""

    LEFT_UNNAMED = "left unnamed"
    """The client's end was seen, and the session has no handle."""

    ANSWERED = "answered"
    """The server had closed the connection, and the client's end was seen."""

    LOST = "lost"
    """The connection is gone without a sign from the client."""

    SETTLED = "settled"
    """``settle_s`` is over."""

    SILENT = "silent"
    """``silence_close_s`` is over since the last message."""

    EXPIRED = "expired"
    """``handle_valid_s`` is over without a connection."""

    DISMISSED = "dismissed"
    """Whoever runs the server ended it."""


A, H, S, F, D, E = State.ATTACHED, State.HELD, State.SETTLING, State.FREE, State.DEAD, State.ENDED

TRANSITIONS: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        A: {
            Event.LEFT_IDLE: S,
            Event.LEFT_SPEAKING: F,
            Event.LEFT_FOR_RESUME: F,
            Event.LEFT_UNNAMED: E,
            Event.ANSWERED: F,
            Event.LOST: H,
            Event.SILENT: D,
            Event.DISMISSED: E,
        },
        H: {Event.SILENT: D, Event.DISMISSED: E},
        S: {Event.SETTLED: F, Event.DISMISSED: E},
        F: {Event.ATTACH: A, Event.EXPIRED: E, Event.DISMISSED: E},
        D: {Event.DISMISSED: E},
        E: {},
    }
)
"""The state after an event, for every pair that can happen. A session begins FREE and is attached at once."""

LOCKED = frozenset({A, H, S})
"""A resume is refused, and the session counts against the limit."""

OVER = frozenset({D, E})
"""No event brings it back."""


class ImpossibleEvent(Exception):
    """A defect of the lab: the table has no such pair."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(state, event)
        self.state = state
        self.event = event

    def __str__(self) -> str:
        return f"A session that is {self.state.value} cannot meet the event {self.event.value}."


def after(state: State, event: Event) -> State:
    """The state after an event.

    Raises:
        ImpossibleEvent: it cannot happen in this state.
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ImpossibleEvent(state, event) from None


def departure(how: Detach, *, closed_by_server: bool, named: bool, speaking: bool, awaited: bool) -> Event:
    """What a connection's end means to the session that it was attached to.

    Args:
        how: How it ended.
        closed_by_server: The server had sent a close frame before.
        named: The session has a handle.
        speaking: The model was in mid-sentence.
        awaited: A resume was refused because of this connection.
    """
    if how in {Detach.TCP_TIMEOUT, Detach.NOTHING}:
        return Event.LOST
    if not named:
        return Event.LEFT_UNNAMED
    if closed_by_server:
        return Event.ANSWERED
    if speaking:
        return Event.LEFT_SPEAKING
    if awaited and how is Detach.CLOSE_FRAME:
        return Event.LEFT_FOR_RESUME
    return Event.LEFT_IDLE
