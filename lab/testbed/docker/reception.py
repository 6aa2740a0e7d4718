"""Where a testbed's agents report: a listening Unix socket in a folder that their containers share with the caller."""

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from lab.core.errors import EnvironmentNotReady, LabError
from lab.testbed.agent.rpc import receive_with_fds, send_with_fds
from lab.testbed.docker.inner.seat import CAPTURES, READY, SOCKET, Hello, Seat
from lab.testbed.docker.refusals import UNRESTRICTED

LOOK_S = 0.25
"""How often a waiting caller asks whether the container still runs."""

_BACKLOG = 8
_EVERYBODY = 0o777
"""The folder above belongs to this user alone; root in a container may be another user than root outside."""

Alive = Callable[[str], None]
"""Raises why the container of a node has ended, if it has."""


class Reception:
    """Receives agents, and seats them.

    Args:
        folder: Shared with the containers; of this user alone.
        timeout_s: How long an agent may take from here on to report and to arrange its node.
    """

    def __init__(self, folder: Path, timeout_s: float) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._guests: dict[str, socket.socket] = {}
        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._folder = folder
        path = folder / SOCKET
        self._listener.bind(str(path))
        path.chmod(_EVERYBODY)
        self._listener.listen(_BACKLOG)
        captures = folder / CAPTURES
        captures.mkdir()
        captures.chmod(_EVERYBODY)

    def __enter__(self) -> Self:
        """The reception itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close; agents that have no seat yet end by that."""
        for sock in (self._listener, *self._guests.values()):
            sock.close()
        (self._folder / SOCKET).unlink(missing_ok=True)

    def receive(self, nodes: Iterable[str], alive: Alive) -> dict[str, Hello]:
        """What the agents of these nodes say first.

        Raises:
            EnvironmentNotReady: one did not report in time, or its container ended.
        """
        awaited = set(nodes)
        hellos: dict[str, Hello] = {}
        while missing := awaited - set(hellos):
            self._listener.settimeout(LOOK_S)
            try:
                guest, _ = self._listener.accept()
            except TimeoutError:
                self._look(missing, alive)
                continue
            guest.settimeout(max(0.1, self._deadline - time.monotonic()))
            hello, _ = receive_with_fds(guest, 0)
            if hello is None:
                guest.close()
                continue
            hellos[hello.node] = hello
            self._guests[hello.node] = guest
        return hellos

    def seat(self, seats: Mapping[str, Seat], fds: Mapping[str, list[int]], alive: Alive) -> None:
        """Tell every agent what to arrange, and wait until each has.

        Args:
            seats: By node.
            fds: By node, the agent's ends of the calls and of the events.
            alive: As ``Alive`` says.

        Raises:
            LabError: what an agent could not do.
        """
        for name, seat in seats.items():
            send_with_fds(self._guests[name], seat, fds[name])
        for name in seats:
            answer = self._answer(name, alive)
            if answer != READY:
                raise (
                    answer
                    if isinstance(answer, LabError)
                    else EnvironmentNotReady(
                        f"The {name}'s container could not be arranged: {answer}.",
                        fix=UNRESTRICTED if "not permitted" in str(answer) else None,
                    )
                )

    def _answer(self, name: str, alive: Alive) -> object:
        guest = self._guests[name]
        guest.settimeout(LOOK_S)
        while True:
            try:
                data = guest.recv(1 << 16)
            except TimeoutError:
                self._look({name}, alive)
                continue
            if not data:
                alive(name)
                raise EnvironmentNotReady(f"The {name}'s agent ended before its node was arranged.")
            return pickle.loads(data)  # noqa: S301 - from our own agent

    def _look(self, missing: Iterable[str], alive: Alive) -> None:
        for name in missing:
            alive(name)
        if time.monotonic() > self._deadline:
            raise EnvironmentNotReady(
                f"The agent in the container of the {' and the '.join(sorted(missing))} did not report within "
                f"{self._timeout_s:g} s. It reaches the lab through {self._folder}, which the engine has to see.",
                fix="run the lab on the engine's own machine; lab doctor says what engine answers",
            )


def shared_path(folder: Path, name: str) -> Path:
    """A new folder for a capture, which root in a container may write to."""
    path = folder / CAPTURES / name
    path.mkdir()
    os.chmod(path, _EVERYBODY)  # noqa: PTH101 - mkdir's mode is cut by the umask
    return path
