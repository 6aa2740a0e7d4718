"""What a session needs of a WebSocket."""

from collections.abc import Callable
from typing import Protocol


class Wire(Protocol):
    """One connection, from its attempt to its end."""

    async def open(self) -> None:
        """Connect; cancelling it leaves no connection behind.

        Raises:
            WireEnded: the connection ended during its handshake.
            OSError: there is nobody, or nobody who is trusted.
        """

    async def receive(self) -> str | bytes:
        """The next whole message: text or octets, as it came. Cancelled, it lets go of the connection, a turn later.

        Raises:
            WireEnded: the connection is over.
        """

    async def send(self, data: bytes) -> None:
        """Write a text message, waiting while the kernel takes no more.

        Raises:
            WireEnded: the connection is over.
        """

    async def cancel(self, code: int, reason: str) -> None:
        """Close: say so, await the answer for a bounded time, and end the connection; idempotent.

        Cancelled, it ends the connection without an answer.
        """

    def leave(self, code: int, reason: str) -> None:
        """Say goodbye now, in any thread, whatever the event loop does; idempotent.

        What is left is ended by ``cancel``, or by cancelling ``receive``.
        """


MakeWire = Callable[[], Wire]
"""A new wire, not yet open."""
