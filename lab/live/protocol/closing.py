"""How the real service ends a connection: close codes and their sentences, each with where it was seen."""

from dataclasses import dataclass

MAX_REASON = 123
"""Octets of a close frame's reason: 125 of a control frame less two for the code (RFC 6455 section 5.5)."""


@dataclass(frozen=True, slots=True)
class Closing:
    """A code and a sentence."""

    code: int
    """WebSocket close code."""

    reason: str
    """UTF-8, as said; ``cut`` makes it fit."""

    source: str
    """Where it was seen."""


INTERNAL_ERROR = Closing(1011, "Internal error encountered.", "the study: refused resume, and the close after silence")
UNAVAILABLE = Closing(1011, "The service is currently unavailable.", "public threads: on a resume")
DEADLINE = Closing(1011, "Deadline expired before operation could complete.", "public threads: after 58 min")
EXHAUSTED = Closing(
    1011,
    "RESOURCE_EXHAUSTED: Maximum concurrent sessions exceeded.",
    "public threads, where the sentence ends after 'concurrent se'; the rest is the lab's",
)
ABORTED = Closing(1008, "The operation was aborted.", "public threads")
GO_AWAY_IGNORED = Closing(
    1008, "The client failed to close the connection after receiving a GoAway.", "public threads: after a goAway"
)
NOT_FOUND = Closing(1008, "BidiGenerateContent session not found", "public threads: on a resume")
NOT_IMPLEMENTED = Closing(1008, "Operation is not implemented, or supported, or enabled.", "public threads")
INVALID_ARGUMENT = Closing(1007, "Request contains an invalid argument.", "public threads: also on a dead handle")
CANCELLED = Closing(1000, "The operation was cancelled.", "public threads")

NORMAL = Closing(1000, "", "RFC 6455: the client is done")
GOING_AWAY = Closing(1001, "", "RFC 6455: the server ends")

ALL = (
    *(INTERNAL_ERROR, UNAVAILABLE, DEADLINE, EXHAUSTED, ABORTED, GO_AWAY_IGNORED),
    *(NOT_FOUND, NOT_IMPLEMENTED, INVALID_ARGUMENT, CANCELLED, NORMAL, GOING_AWAY),
)


def cut(reason: str, limit: int = MAX_REASON) -> str:
    """As much of a sentence as a close frame carries, never half a character.

    Args:
        reason: Any text.
        limit: Octets of UTF-8.
    """
    return reason.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
