"""The flows that pass, by age, and the one that is meant."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.control.refusals import AmbiguousFlow, NoSuchFlow
from lab.core.flow import FourTuple
from lab.testbed.ports import PassingFlow, TrackState

OVER = frozenset({TrackState.NONE, TrackState.LAST_ACK, TrackState.TIME_WAIT, TrackState.CLOSE})
"""States in which a connection has ended, or never was one."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A flow by what is known of it before it exists: the server's port, not the client's."""

    server_port: int
    which: str | int | None
    """first, newest or the client's port where several match; None insists on exactly one."""


class Roll:
    """The open flows, in the order of their age.

    The kernel dates connections where it may (``since``); where it may not, or two are of one age, the order of their
    first sight decides.
    """

    def __init__(self) -> None:
        self._seen: dict[FourTuple, int] = {}
        self._looks = 0
        self._flows: tuple[PassingFlow, ...] = ()

    @property
    def flows(self) -> Sequence[PassingFlow]:
        """What the last look saw, oldest first."""
        return self._flows

    def look(self, listed: Sequence[PassingFlow]) -> tuple[Sequence[PassingFlow], Sequence[PassingFlow]]:
        """Take what passes now; those that appeared since the last look, and those that ended."""
        self._looks += 1
        now = {one.flow: one for one in listed if one.state not in OVER}
        before = {one.flow: one for one in self._flows}
        self._seen = {flow: self._seen.get(flow, self._looks) for flow in now}
        self._flows = tuple(sorted(now.values(), key=lambda one: (one.since or 0.0, self._seen[one.flow])))
        appeared = [one for one in self._flows if one.flow not in before]
        return appeared, [one for flow, one in before.items() if flow not in now]

    def require(self, flow: FourTuple) -> None:
        """Insist on an open flow.

        Raises:
            NoSuchFlow: it does not pass.
        """
        if flow not in self._seen:
            raise NoSuchFlow(str(flow), self._names())

    def choose(self, selector: Selector) -> FourTuple:
        """The established flow that is meant.

        Raises:
            NoSuchFlow: none is.
            AmbiguousFlow: several are, and nothing says which.
        """
        port, which = selector.server_port, selector.which
        found = [
            one.flow for one in self._flows if one.flow.server.port == port and one.state is TrackState.ESTABLISHED
        ]
        if isinstance(which, int):
            found = [flow for flow in found if flow.client.port == which]
        if not found:
            leaving = f" and leaves the client's port {which}" if isinstance(which, int) else ""
            raise NoSuchFlow(f"established, goes to port {port}{leaving}", self._names())
        if len(found) > 1 and which not in ("first", "newest"):
            raise AmbiguousFlow(port, found)
        return found[-1] if which == "newest" else found[0]

    def _names(self) -> list[FourTuple]:
        return [one.flow for one in self._flows]
