"""What a remote session tells who waits for something that does not come."""

from lab.host.machine.commands import Outcome


class RequestFailed(Exception):
    """A request that has no answer.

    Args:
        outcome: How it ended.
        why: The host's error, or the remote's own word.
    """

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(outcome, why)
        self.outcome = outcome
        self.why = why

    def __str__(self) -> str:
        return f"The request was {self.outcome.value}: {self.why}"


class NotTold(Exception):
    """The transport ended, and nobody had told the session's end.

    Args:
        why: How it ended.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"The session's end was not told before the transport's: {self.why}"
