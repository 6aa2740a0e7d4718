"""The first process of a testbed: builds it, starts its agents, and takes it down with itself.

It is process 1 of the testbed's PID namespace: when it ends, for whatever reason, the kernel kills every process in
there, daemonised grandchildren too, and with the last process the namespaces go. It ends when the caller closes its end
of the event socket, by will or by SIGKILL.
"""

import contextlib
import os
import pickle
import signal
import socket
from functools import partial
from typing import NamedTuple, NoReturn

from lab.core.errors import LabError
from lab.testbed.agent import kernel
from lab.testbed.agent.child import become
from lab.testbed.agent.hosted import Premises
from lab.testbed.agent.rpc import send_with_fds
from lab.testbed.agent.service import serve_node
from lab.testbed.names import LEFT, NODES, RIGHT
from lab.testbed.netns import links, mounts, readiness
from lab.testbed.netns.layout import hosts_file
from lab.testbed.netns.services import Services
from lab.testbed.ports import TestbedSpec

READY = "ready"


class Ends(NamedTuple):
    """The testbed's ends of the caller's sockets."""

    events: socket.socket
    nodes: dict[str, socket.socket]

    @classmethod
    def from_fds(cls, fds: list[int]) -> "Ends":
        """From descriptors in the order events, nodes."""
        events, *nodes = (socket.socket(fileno=fd) for fd in fds)
        return cls(events, dict(zip(NODES, nodes, strict=True)))

    def close(self) -> None:
        """Close all; what another process holds stays open."""
        for sock in (self.events, *self.nodes.values()):
            sock.close()


class Shared(NamedTuple):
    """What the testbeds of one fork server have in common."""

    batches: links.Batches
    services: socket.socket
    """To the process that starts services."""


def run(spec: TestbedSpec, ends: Ends, shared: Shared) -> NoReturn:
    """Be the keeper of a new testbed; in the first process of a new PID namespace."""
    kernel.name_process("lab-keeper")
    # Orphans of the testbed become this process's children: the kernel shall reap them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        _build(spec, ends, shared)
    except Exception as error:  # noqa: BLE001 - the caller gets it, whatever it is
        ends.events.send(pickle.dumps(error if isinstance(error, LabError) else readiness.explain(error)))
        os._exit(1)
    with contextlib.suppress(ConnectionError):  # A caller that was killed may leave a reset.
        ends.events.recv(1)
    os._exit(0)


def _build(spec: TestbedSpec, ends: Ends, shared: Shared) -> None:
    mounts.arrange(hosts_file(ipv6=spec.ipv6))
    namespaces = links.make_namespaces()
    links.build(namespaces, shared.batches, spec.sysctls, keep_offloads=spec.offloads)
    for node in NODES:
        if os.fork() == 0:
            become(partial(_run_agent, node, namespaces, spec, ends, shared))
    for fd in namespaces.values():
        os.close(fd)
    for sock in (*ends.nodes.values(), shared.services):
        sock.close()
    send_with_fds(ends.events, READY, [os.pidfd_open(os.getpid())])


def _run_agent(node: str, namespaces: dict[str, int], spec: TestbedSpec, ends: Ends, shared: Shared) -> None:
    """Keep what belongs to the node, so that the end of any other agent is seen by the caller."""
    calls = ends.nodes.pop(node)
    for sock in ends.nodes.values():
        sock.close()
    for name, fd in namespaces.items():
        if name != node:
            os.close(fd)
    kernel.setns(namespaces[node], kernel.CLONE_NEWNET)
    os.close(namespaces[node])
    kernel.unshare(kernel.CLONE_NEWUTS)
    kernel.set_hostname(node)
    serve_node(node, calls, ends.events, Services(Premises(spec.firewall, LEFT, RIGHT), shared.services))
