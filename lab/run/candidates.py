"""The established flows of a running container, and which of them is meant."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.core.errors import UsageError
from lab.core.fault import Placement
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketSample, TcpState

FIRST, NEWEST = "first", "newest"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An established flow of the container."""

    flow: FourTuple
    placement: Placement
    """Which end of it is in the container."""

    inode: int

    @property
    def local(self) -> Endpoint:
        """The container's end."""
        return self.flow.client if self.placement is Placement.CLIENT_SINK else self.flow.server

    @property
    def remote(self) -> Endpoint:
        """The other end."""
        return self.flow.server if self.placement is Placement.CLIENT_SINK else self.flow.client


def candidates(sockets: Sequence[SocketSample], port: int | None) -> list[Candidate]:
    """The established flows, oldest first as far as the kernel's inode numbers tell.

    Args:
        sockets: All of the container's.
        port: The server's, None for any.
    """
    listening = {one.local.port for one in sockets if one.state is TcpState.LISTEN}
    found = []
    for one in sockets:
        if one.state is not TcpState.ESTABLISHED or (
            port is not None and port not in (one.local.port, one.remote.port)
        ):
            continue
        serves = one.local.port == port if port is not None else one.local.port in listening
        if serves and one.remote.port != port:
            found.append(Candidate(FourTuple(one.remote, one.local), Placement.SERVER_SINK, one.inode))
        else:
            found.append(Candidate(FourTuple(one.local, one.remote), Placement.CLIENT_SINK, one.inode))
    return sorted(found, key=lambda candidate: candidate.inode)


def choose(
    found: Sequence[Candidate], choice: str | None, port: int | None = None, others: Sequence[Candidate] = ()
) -> Candidate:
    """The flow that is meant.

    Args:
        found: The candidates, oldest first.
        choice: first, newest, a port, or ADDRESS:PORT of one end; None insists on exactly one.
        port: The server's, which all of ``found`` have.
        others: What there is with any port.

    Raises:
        UsageError: none, or several and no choice that tells them apart.
    """
    matching = [one for one in found if _is_meant(one, choice)]
    if not matching:
        of = f" with port {port}" if port is not None else ""
        like = "" if choice in (None, FIRST, NEWEST) else f" that is {choice}"
        seen = found or others
        fix = "name one of these by --port or --flow" if seen else "wait until its program has connected"
        raise UsageError(f"The container has no established TCP flow{of}{like}.{_listed(seen)}", fix=fix)
    if choice == FIRST:
        return matching[0]
    if choice == NEWEST:
        return matching[-1]
    if len(matching) > 1:
        raise UsageError(
            f"{len(matching)} established flows match.{_listed(matching)}",
            fix="--flow first, newest, a port, or ADDRESS:PORT of one end",
        )
    return matching[0]


def _is_meant(one: Candidate, choice: str | None) -> bool:
    if choice in (None, FIRST, NEWEST):
        return True
    return choice in {text for end in one.flow for text in (str(end.port), str(end))}


def _listed(found: Sequence[Candidate]) -> str:
    return "".join(f"\n  {one.flow}" for one in found)
