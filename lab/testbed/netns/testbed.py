"""The embedded testbed, as the caller uses it."""

import contextlib
import os
import pickle
import select
import signal
import socket
import threading
import weakref
from typing import Self

from lab.core.errors import InvalidRun, Unsupported, UsageError
from lab.testbed.agent.nodes import AgentNode, AgentRouter
from lab.testbed.agent.rpc import Channel, receive_with_fds, too_many_files
from lab.testbed.names import CLIENT, NODES, ROUTER, SERVER
from lab.testbed.netns import keeper, launcher, readiness
from lab.testbed.netns.layout import ADDRESSES
from lab.testbed.netns.links import has_ipv6
from lab.testbed.ports import TestbedSpec

_UP_TIMEOUT_S = 60.0
_DOWN_TIMEOUT_S = 10.0
_EVENT_BYTES = 1 << 17


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
        if unknown := sorted(set(spec.sysctls) - set(NODES)):
            raise UsageError(f"There is no node {unknown[0]!r}.", fix=f"use one of {', '.join(NODES)}")
        if spec.ipv6 and not has_ipv6():
            raise Unsupported("This kernel has no IPv6.")
        self._lock = threading.RLock()
        self._closed = False
        try:
            self._events, far_events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            pairs = {name: socket.socketpair() for name in NODES}
        except OSError as error:
            raise readiness.explain(error) from error
        channels = {name: Channel(near, f"The {name}'s agent") for name, (near, _) in pairs.items()}
        self._client = AgentNode(CLIENT, channels[CLIENT], ADDRESSES[CLIENT])
        self._server = AgentNode(SERVER, channels[SERVER], ADDRESSES[SERVER])
        self._router = AgentRouter(channels[ROUTER], ADDRESSES[ROUTER], self._client, self._server)
        self._nodes = {node.name: node for node in (self._client, self._router, self._server)}
        _alive.add(self)
        far = [far_events, *(pairs[name][1] for name in NODES)]
        try:
            self._keeper = self._bring_up(spec, far)
        except BaseException:
            self._close_sockets()
            raise
        self._reader = threading.Thread(target=self._read_events, name="lab-events", daemon=True)
        self._reader.start()

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

    def _bring_up(self, spec: TestbedSpec, far: list[socket.socket]) -> int:
        """Have it made, wait until it is; descriptor of the keeper."""
        try:
            launcher.launch(spec, [sock.fileno() for sock in far])
        finally:
            # The agents hold the only copies now, so that their end is seen.
            for sock in far:
                sock.close()
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
        self._reader.join()
        self._close_sockets()
        os.close(self._keeper)

    def _await_ready(self) -> int:
        self._events.settimeout(_UP_TIMEOUT_S)
        try:
            answer, fds = receive_with_fds(self._events, 1)
        except TimeoutError:
            raise InvalidRun(f"The testbed did not come up within {_UP_TIMEOUT_S:g} s.") from None
        if answer != keeper.READY:
            raise answer or InvalidRun("The testbed's keeper ended before the testbed was up.")
        if not fds:
            # The kernel drops descriptors for which there is no room.
            raise too_many_files()
        self._events.settimeout(None)
        return fds[0]

    def _read_events(self) -> None:
        """Hand every event to its program; the testbed's one thread in the calling process."""
        while packet := self._events.recv(_EVENT_BYTES):
            event = pickle.loads(packet)  # noqa: S301 - from our own agents
            process = self._nodes[event.node].process(event.program)
            if process is not None:
                process.handle(event)
        for node in self._nodes.values():
            for process in node.processes():
                process.abandon()

    def _close_sockets(self) -> None:
        for node in self._nodes.values():
            node.close()
        self._events.close()

    def _let_go(self) -> None:
        """In a fork of the caller: close what would hide the caller's end from the keeper."""
        for node in self._nodes.values():
            node.let_go()
        self._events.close()
        self._closed = True
        # Another thread may have held it at the fork; here there is none to release it.
        self._lock = threading.RLock()


def open_testbed(spec: TestbedSpec | None = None) -> NetnsTestbed:
    """A testbed that is up; close it, or use it as a context manager."""
    return NetnsTestbed(spec)


_alive: "weakref.WeakSet[NetnsTestbed]" = weakref.WeakSet()


def _let_go_of_all() -> None:
    for testbed in list(_alive):
        testbed._let_go()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_let_go_of_all)
