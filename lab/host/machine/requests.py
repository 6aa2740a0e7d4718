"""A host's requests, from their arrival to their answers: each is answered once, or forgotten with the transport."""

from lab.host.machine.commands import Delivered, Flush, Forget, HostCommand, Send
from lab.host.protocol.messages import Answer, Response

JOB = None
"""Who answers a request that needs no session."""


class Requests:
    """Those that wait for an answer, and the job's answers, which wait for the transport to take them.

    Args:
        drain_s: How long that may take.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s
        self._open: dict[str, str | None] = {}
        """Those without an answer, and whose each is."""
        self._delivering: dict[str, float] = {}
        """Those whose answers, the job's, are queued, and until when that may go on."""

    @property
    def waiting(self) -> list[str]:
        """Those without an answer, in the order in which they came."""
        return list(self._open)

    def came(self, request: str, whose: str | None) -> None:
        """One is to be answered, by a session or by the job."""
        self._open[request] = whose

    def of(self, whose: str | None) -> list[str]:
        """Those that a session has to answer, or the job."""
        return [request for request, one in self._open.items() if one == whose]

    def answered(self, request: str, answer: Answer | None, error: str | None, *, now: float) -> list[HostCommand]:
        """One has its answer."""
        send = Send(Response(request, answer, error))
        if self._open.pop(request) is not JOB:
            return [send]
        self._delivering[request] = now + self._drain_s
        return [send, Flush(request)]

    def fail(self, request: str, why: str) -> list[HostCommand]:
        """One has an error for its answer, and who was asked need not go on."""
        del self._open[request]
        return [Forget(request), refuse(request, why)]

    def forget(self) -> list[HostCommand]:
        """Nobody waits for an answer any more."""
        forgotten: list[HostCommand] = [Forget(request) for request in self._open]
        self._open.clear()
        return forgotten

    def delivered(self, request: str, *, delivered: bool) -> list[HostCommand]:
        """Whether the transport took an answer of the job's; said once for each."""
        return [Delivered(request, delivered)] if self._delivering.pop(request, None) is not None else []

    def all_delivered(self, *, delivered: bool) -> list[HostCommand]:
        """The same for every one that is queued."""
        return [told for request in list(self._delivering) for told in self.delivered(request, delivered=delivered)]

    def next_at(self) -> float | None:
        """When the first of them is given up."""
        return min(self._delivering.values(), default=None)

    def wake(self, *, now: float) -> list[HostCommand]:
        """Give up those that are due."""
        late = [request for request, until in self._delivering.items() if until <= now]
        return [told for request in late for told in self.delivered(request, delivered=False)]


def refuse(request: str, why: str) -> Send:
    """An error in an answer's place."""
    return Send(Response(request, error=why))
