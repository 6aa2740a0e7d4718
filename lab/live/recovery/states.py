"""Where a recovery stands, and the one table by which it moves.

After a loss the session is wanted back first: the server still holds it, and it knows what was said. That fails as
long as the server believes in the old connection, so it is tried for a short window only. Then a new session is
told the history. What the table lacks does not happen: an event that it does not name is too late, and changes nothing.
"""

import enum


class State(enum.Enum):
    """Where a recovery stands."""

    ATTACHED = "attached"
    """A connection is adopted."""

    RESUMING = "resuming"
    """The window: attempts by handle, and beside them a new session if the policy is parallel."""

    CLOSING = "closing"
    """In the window, with the path back: no further attempt before the old connection's close has arrived."""

    FALLING_BACK = "falling-back"
    """Only a new session is still tried."""

    GIVEN_UP = "given-up"
    """Nothing is tried, the user was told."""

    CLOSED = "closed"
    """As the user wanted."""


class Event(enum.Enum):
    """What moves it."""

    LOST = "lost"
    """The adopted connection, and its session has a handle."""

    LOST_WITHOUT_HANDLE = "lost-without-handle"
    READY = "ready"
    """An open attempt got its setup's answer."""

    HANDLE_DEAD = "handle-dead"
    PATH_BACK = "path-back"
    OLD_CLOSED = "old-closed"
    """The old connection's close has arrived, or is waited for no longer."""

    WINDOW_OVER = "window-over"
    NO_WAY_LEFT = "no-way-left"
    """A budget is spent, or the policy allows no fallback."""

    WANTED_CLOSE = "wanted-close"


RECOVERING = frozenset({State.RESUMING, State.CLOSING, State.FALLING_BACK})
"""Between a loss and its end."""

TABLE: dict[State, dict[Event, State]] = {
    State.ATTACHED: {
        Event.LOST: State.RESUMING,
        Event.LOST_WITHOUT_HANDLE: State.FALLING_BACK,
        Event.NO_WAY_LEFT: State.GIVEN_UP,
        Event.WANTED_CLOSE: State.CLOSED,
    },
    State.RESUMING: {
        Event.READY: State.ATTACHED,
        Event.HANDLE_DEAD: State.FALLING_BACK,
        Event.PATH_BACK: State.CLOSING,
        Event.OLD_CLOSED: State.RESUMING,
        Event.WINDOW_OVER: State.FALLING_BACK,
        Event.NO_WAY_LEFT: State.GIVEN_UP,
        Event.WANTED_CLOSE: State.CLOSED,
    },
    State.CLOSING: {
        Event.READY: State.ATTACHED,
        Event.HANDLE_DEAD: State.FALLING_BACK,
        Event.OLD_CLOSED: State.RESUMING,
        Event.NO_WAY_LEFT: State.GIVEN_UP,
        Event.WANTED_CLOSE: State.CLOSED,
    },
    State.FALLING_BACK: {
        Event.READY: State.ATTACHED,
        Event.NO_WAY_LEFT: State.GIVEN_UP,
        Event.WANTED_CLOSE: State.CLOSED,
    },
    State.GIVEN_UP: {
        Event.WANTED_CLOSE: State.CLOSED,
    },
    State.CLOSED: {},
}
