"""The embedded testbed, as the caller uses it."""

import contextlib
import os
import select
import signal
import threading
import weakref
from typing import Self

from lab.core.errors import InvalidRun, Unsupported, UsageError
from lab.core.uplink import Uplink
from lab.testbed.agent.nodes import AgentNode, AgentRouter
from lab.testbed.agent.rpc import receive_with_fds, too_many_files
from lab.testbed.agent.wires import Wires
from lab.testbed.moving import move
from lab.testbed.names import CLIENT, NODES, ROUTER, SERVER
from lab.testbed.netns import keeper, launcher, readiness
from lab.testbed.netns.layout import ADDRESSES
from lab.testbed.netns.links import has_ipv6
from lab.testbed.ports import TestbedSpec

_UP_TIMEOUT_S = 60.0
_DOWN_TIMEOUT_S = 10.0


class NetnsTestbed:
    """Three nodes in namespaces of their own; fulfils ``ports.Testbed``.

    Raises:
        EnvironmentNotReady: the kernel does not let this user make namespaces.
        UsageError: a sysctl that does not exist in a namespace, or a node that does not.
        Unsupported: this kernel lacks a sysctl.
    """

    __test__ = False

    def __init__(self, spec: TestbedSpec | None = None) -> None:
        spec = spec or TestbedSpec()
        if spec.uplink is not None:
            raise _no_way_out(spec.uplink)
        if unknown := sorted(set(spec.sysctls) - set(NODES)):
            raise UsageError(f"There is no node {unknown[0]!r}.", fix=f"use one of {', '.join(NODES)}")
        if spec.ipv6 and not has_ipv6():
            raise Unsupported("This kernel has no IPv6.")
        self._lock = threading.RLock()
        self._closed = False
        self._moves = 0
        try:
            self._wires = Wires(NODES)
        except OSError as error:
            raise readiness.explain(error) from error
        channels = self._wires.channels
        self._client = AgentNode(CLIENT, channels[CLIENT], ADDRESSES[CLIENT])
        self._server = AgentNode(SERVER, channels[SERVER], ADDRESSES[SERVER])
        self._router = AgentRouter(channels[ROUTER], ADDRESSES[ROUTER], self._client, self._server)
        _alive.add(self)
        try:
            self._keeper = self._bring_up(spec)
        except BaseException:
            self._wires.close()
            raise
        self._wires.connect({node.name: node for node in (self._client, self._router, self._server)})

    @property
    def backend(self) -> str:
        """Which kind it is."""
        return "netns"

    @property
    def client(self) -> AgentNode:
        """The node that opens the connections."""
        return self._client

    @property
    def router(self) -> AgentRouter:
        """The node in the middle."""
        return self._router

    @property
    def server(self) -> AgentNode:
        """The node that accepts them."""
        return self._server

    def move_client(self) -> str:
        """Give the client other addresses of its link in place of its own."""
        with self._lock:
            self._moves += 1
            return move(self.client, self.router, (self.client, self.router, self.server), self._moves).ipv4

    def interventions(self) -> None:
        """Nobody can tell; but nobody else has a handle on its namespaces either."""

    def close(self) -> None:
        """End every process and remove everything; idempotent."""
        with self._lock:
            # Marked last, so that a close that was interrupted can be made again.
            if not self._closed:
                self._take_down()
                self._closed = True

    def __enter__(self) -> Self:
        """The testbed itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()

    def _bring_up(self, spec: TestbedSpec) -> int:
        """Have it made, wait until it is; descriptor of the keeper."""
        far = [self._wires.far_events, *(self._wires.far_calls[name] for name in NODES)]
        try:
            launcher.launch(spec, [sock.fileno() for sock in far])
        finally:
            self._wires.release()
        return self._await_ready()

    def _take_down(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            # Process 1 of the PID namespace: the kernel kills and awaits all others before it reports the end.
            signal.pidfd_send_signal(self._keeper, signal.SIGKILL)
        poll = select.poll()
        poll.register(self._keeper, select.POLLIN)
        if not poll.poll(_DOWN_TIMEOUT_S * 1000):
            raise InvalidRun(f"The testbed's processes did not end within {_DOWN_TIMEOUT_S:g} s of SIGKILL.")
        # Their ends of the event socket are closed now, which ends the reader.
        self._wires.join()
        self._wires.close()
        os.close(self._keeper)

    def _await_ready(self) -> int:
        self._wires.events.settimeout(_UP_TIMEOUT_S)
        try:
            answer, fds = receive_with_fds(self._wires.events, 1)
        except TimeoutError:
            raise InvalidRun(f"The testbed did not come up within {_UP_TIMEOUT_S:g} s.") from None
        if answer != keeper.READY:
            raise answer or InvalidRun("The testbed's keeper ended before the testbed was up.")
        if not fds:
            # The kernel drops descriptors for which there is no room.
            raise too_many_files()
        self._wires.events.settimeout(None)
        return fds[0]

    def _let_go(self) -> None:
        """In a fork of the caller: close what would hide the caller's end from the keeper."""
        self._wires.let_go()
        self._closed = True
        # Another thread may have held it at the fork; here there is none to release it.
        self._lock = threading.RLock()


def _no_way_out(uplink: Uplink) -> Unsupported:
    return Unsupported(
        f"The embedded testbed has no way out to {uplink}. Without root only a user-mode network stack (slirp4netns, "
        "pasta) could lead there; it would end the far connection itself and go on acknowledging, so that the far end "
        "would never see a dead peer. With root the lab would have to change this machine's own network.",
        fix="--backend docker",
    )


def open_testbed(spec: TestbedSpec | None = None) -> NetnsTestbed:
    """A testbed that is up; close it, or use it as a context manager."""
    return NetnsTestbed(spec)


_alive: "weakref.WeakSet[NetnsTestbed]" = weakref.WeakSet()


def _let_go_of_all() -> None:
    for testbed in list(_alive):
        testbed._let_go()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_let_go_of_all)
