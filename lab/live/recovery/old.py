"""Connections that were adopted once: each is asked to close, and asked again when its path is back."""

import enum
from dataclasses import dataclass, field

from lab.live.recovery.commands import CloseOld, Command


class Asked(enum.Enum):
    """What was asked of a connection that has not ended yet."""

    NOTHING = "nothing"
    CLOSE = "close"
    AGAIN = "again"
    """With the path back."""


@dataclass(slots=True)
class OldConnections:
    """Those of one conversation, by their numbers."""

    latest: int | None = None
    """The one lost last."""

    _asked: dict[int, Asked] = field(default_factory=dict)

    def leave(self, number: int, *, gone: bool, close: bool) -> list[Command]:
        """A connection is no longer the adopted one.

        Args:
            number: The connection.
            gone: Its socket is, too.
            close: Close it now; else with the rest.
        """
        self.latest = number
        if gone:
            return []
        self._asked[number] = Asked.CLOSE if close else Asked.NOTHING
        return [CloseOld(number)] if close else []

    def close_again(self, number: int) -> list[Command]:
        """Its path is back."""
        self._asked[number] = Asked.AGAIN
        return [CloseOld(number)]

    def awaits_path(self, number: int) -> bool:
        """Whether it is there still and its path was not back yet."""
        return self._asked.get(number, Asked.AGAIN) is not Asked.AGAIN

    def ended(self, number: int) -> bool:
        """It is closed; whether that is news."""
        return self._asked.pop(number, None) is not None

    def close_the_rest(self) -> list[Command]:
        """Those that were not asked yet."""
        rest = [number for number, asked in self._asked.items() if asked is Asked.NOTHING]
        self._asked.update(dict.fromkeys(rest, Asked.CLOSE))
        return [CloseOld(number) for number in rest]
