"""Services in a container: forks of the node's agent, which is in the right namespaces already."""

import os
import signal
import socket
from collections.abc import Sequence

from lab.core.errors import InvalidRun
from lab.testbed.agent import hosted, kernel, priority
from lab.testbed.agent.child import become
from lab.testbed.agent.hosted import Premises
from lab.testbed.agent.rpc import Attached

_FIRST_FD = 3
"""Behind the standard ones."""


class ForkedServices:
    """What a node's agent answers about services.

    Args:
        premises: What a service needs to know of the node.
        at_once: Services that start now, so that the libraries they load are there when the first call comes.
    """

    def __init__(self, premises: Premises, at_once: Sequence[str]) -> None:
        self.premises = premises
        """For the services that start from now on."""

        # The kernel reaps the services; commands are awaited by their process descriptors.
        self._waiting = {name: self._fork(name) for name in at_once}

    def open_service(self, name: str) -> Attached:
        """The descriptor that comes with the answer leads to the service of this name."""
        near = self._waiting.pop(name, None) or self._fork(name)
        return Attached(None, fd=near.detach())

    def _fork(self, name: str) -> socket.socket:
        if name not in hosted.HOSTED:
            raise InvalidRun(f"There is no service {name}.")
        near, far = socket.socketpair()
        if os.fork() == 0:
            near.close()
            become(lambda: _run(name, self.premises, far))
        far.close()
        return near


def _run(name: str, premises: Premises, channel: socket.socket) -> None:
    kernel.name_process(f"lab-{name}")
    priority.fall()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    keep = channel.fileno()
    os.closerange(_FIRST_FD, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    hosted.HOSTED[name](premises, channel)
