"""What is not the protocol, and whose fault it is.

::

    HostProtocolError            what came is the other side's mistake
     +- FrameTooLong                 fatal: where the next frame begins is not worth reading on for
     +- FrameTruncated               fatal: the stream ended in the midst of one
     +- NoMessage                    one frame's: the next one is read
    Unsayable                    what was to be said is this side's own mistake
"""

_HTTP = frozenset(int.from_bytes(word, "big") for word in (b"GET ", b"HTTP"))
"""What the first octets of HTTP, and so of WebSocket, are as a length."""


class HostProtocolError(ValueError):
    """What came breaks the protocol; its text is a sentence for the side that sent it."""

    fatal = False
    """Nothing of this connection can be read any more."""


class FrameTooLong(HostProtocolError):
    """A frame announces more octets than a message may have.

    Args:
        octets: How many.
        most: How many are allowed.
    """

    fatal = True

    def __init__(self, octets: int, most: int) -> None:
        super().__init__(octets, most)
        self.octets = octets
        self.most = most

    def __str__(self) -> str:
        if self.octets in _HTTP:
            return (
                "What came begins like HTTP, not with a frame's length: the other side speaks WebSocket. "
                "Fix: have the same carrier at both sides; for the programs, --websocket at both or at neither."
            )
        return (
            f"A frame of {self.octets} octets is longer than the {self.most} that a message may have. "
            "Fix: say less in it."
        )


class FrameTruncated(HostProtocolError):
    """The stream ended before a frame did.

    Args:
        octets: How many of it came, its length's own included.
        wanted: How many it should have, None where not even its length was whole.
    """

    fatal = True

    def __init__(self, octets: int, wanted: int | None) -> None:
        super().__init__(octets, wanted)
        self.octets = octets
        self.wanted = wanted

    def __str__(self) -> str:
        whole = "its length" if self.wanted is None else f"{self.wanted}"
        return f"The stream ended after {self.octets} octets of a frame, before {whole} had come."


class NoMessage(HostProtocolError):
    """A whole frame that is no message of the set.

    Args:
        why: What is wrong with it.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"A frame is no message of the set: {self.why}."


class Unsayable(ValueError):
    """No message of the set can hold what was to be said; its text is a sentence for who gave it.

    Args:
        why: What is wrong with it.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"No message of the set can hold what was to be said: {self.why.rstrip('.')}."
