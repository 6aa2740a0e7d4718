"""Finds the flow that a test means among those that pass."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lab.core.errors import UsageError
from lab.core.flow import FourTuple
from lab.core.socket import TcpState
from lab.testbed.docker.nodes import ContainerNode
from lab.testbed.names import CLIENT
from lab.testbed.ports import TrackState
from lab.testcontainers.control import Control
from lab.testcontainers.waiting import POLL_S, Watch, last_line, tail

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

FLOW_TIMEOUT_S = 10.0


class Finder:
    """Waits for a flow.

    Args:
        control: Knows the flows, their age, and which are cut.
        client: Whose flows they are, as its kernel has them; None: whatever passes.
        containers: By node; the end of one ends the waiting.
        cuts: The flows that were cut, and when, CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        control: Control,
        client: ContainerNode | None = None,
        containers: Mapping[str, "DockerContainer"] | None = None,
        cuts: Mapping[FourTuple, float] | None = None,
    ) -> None:
        self._control = control
        self._client = client
        self._containers = containers or {}
        self._cuts = cuts or {}

    def find(self, port: int | None, which: str | int | None, timeout_s: float) -> FourTuple:
        """The established flow that is meant and not cut.

        Args:
            port: The server's; any where None.
            which: first, newest or the client's port; None insists on exactly one.
            timeout_s: How long to wait for one.

        Raises:
            UsageError: none came, or several match.
            TimeoutError: none came after another one was cut: the client has not opened a new one.
        """
        __tracebackhide__ = True
        if isinstance(which, str) and which not in ("first", "newest"):
            raise UsageError(f"A flow is chosen by first, newest or the client's port, not {which!r}.")
        deadline = time.monotonic() + timeout_s
        watches = [Watch(node, container) for node, container in self._containers.items()]
        while not (found := self._established(port, which)):
            for watch in watches:
                watch.refuse_end("had a flow" + _to(port))
            if time.monotonic() > deadline:
                if (cut_at := self._latest_cut(port)) is not None:
                    raise TimeoutError(self._no_other(port, which, cut_at))
                raise UsageError(self._none(port, which, timeout_s), fix="let the client keep one open")
            time.sleep(POLL_S)
        if len(found) > 1 and which is None:
            ports = ", ".join(str(flow.client.port) for flow in found)
            raise UsageError(
                f"{len(found)} flows match{_to(port)}; they leave the client's ports {ports}.",
                fix='say which one: which="first", which="newest" or which=PORT',
            )
        return found[-1] if which == "newest" else found[0]

    def _established(self, port: int | None, which: str | int | None) -> list[FourTuple]:
        """Oldest first."""
        found = [
            one.flow
            for one in self._control.light()
            if one.state is TrackState.ESTABLISHED
            and port in (None, one.flow.server.port)
            and (not isinstance(which, int) or one.flow.client.port == which)
        ]
        if self._client is None:
            return found
        # Connection tracking still lists what a kernel has given up.
        here = {(one.local, one.remote) for one in self._client.sockets() if one.state is TcpState.ESTABLISHED}
        return [flow for flow in found if (flow.client, flow.server) in here]

    def _latest_cut(self, port: int | None) -> float | None:
        """When a flow to that port was cut last, None where none was."""
        return max((at for flow, at in self._cuts.items() if port in (None, flow.server.port)), default=None)

    def _no_other(self, port: int | None, which: str | int | None, cut_at: float) -> str:
        """What a client that never came back has not done: what the test asks, and no mistake of its author."""
        leaving = f" from its port {which}" if isinstance(which, int) else ""
        client = self._containers.get(CLIENT)
        said = "" if client is None else f"; {last_line(client)}"
        after = f"{time.monotonic() - cut_at:.1f} s after the cut"
        return f"{after} the client has opened no other connection{_to(port)}{leaving}{said}"

    def _none(self, port: int | None, which: str | int | None, timeout_s: float) -> str:
        leaving = f" that leaves port {which}" if isinstance(which, int) else ""
        others = ", ".join(str(one.flow) for one in self._control.flows()) or "none"
        wanted = f"established flow{_to(port)}{leaving} that is not cut"
        return f"After {timeout_s:g} s there is no {wanted}; flows that the router knows: {others}." + "".join(
            f" The {node}: {tail(container)}" for node, container in self._containers.items()
        )


def _to(port: int | None) -> str:
    return "" if port is None else f" to port {port}"
