"""The nodes of a testbed in containers, as the caller uses them: the embedded ones' calls, and what differs."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import EnvironmentNotReady, Unsupported
from lab.core.socket import SocketOptions
from lab.testbed.agent.nodes import AgentNode, AgentRouter, Surroundings
from lab.testbed.agent.process import AgentProcess
from lab.testbed.agent.rpc import Channel
from lab.testbed.docker.inner.seat import CAPTURES, FOLDER
from lab.testbed.docker.reception import shared_path
from lab.testbed.names import Addresses
from lab.testbed.ports import CaptureSummary

if TYPE_CHECKING:
    from lab.testbed.docker.program import Launcher


class Inside(Surroundings):
    """What a holder's programs see: its own environment, and the caller's folder where it has that.

    Args:
        environment: Of the holder's image.
        workplace: The caller's folder that programs can read; None where there is none.
    """

    def __init__(self, environment: Mapping[str, str], workplace: Path | None) -> None:
        self._environment = environment
        self._workplace = workplace

    def environment(self, added: Mapping[str, str] | None) -> Mapping[str, str]:
        """The holder's, and what the starter adds."""
        return {**self._environment, **(added or {})}

    def folder(self, wanted: Path | None) -> str:
        """The caller's, or the root."""
        return str(wanted or self._workplace or "/")


def require_sysctl(node: AgentNode, name: str, value: str) -> None:
    """See that a sysctl of a container, which was given at its creation, has this value.

    Raises:
        Unsupported: it has another one.
    """
    if (has := node.read_sysctl(name)) != " ".join(value.split()):
        raise Unsupported(
            f"{name} of a container is set at its creation; it is {has!r}, not {value!r}.",
            fix="give it in TestbedSpec.sysctls",
        )


class ContainerNode(AgentNode):
    """Client or server in a container; fulfils ``ports.Node``.

    Args:
        name: client, router or server.
        channel: To the holder's agent.
        addresses: What the other nodes know it by.
        inside: What its programs see.
        launcher: Starts containers of the user's image; None where programs run in the lab's own.
    """

    def __init__(
        self, name: str, channel: Channel, addresses: Addresses, inside: Inside, launcher: "Launcher | None" = None
    ) -> None:
        super().__init__(name, channel, addresses, inside)
        self._launcher = launcher

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> AgentProcess:
        """Start a command, in a container of its own where the node has an image."""
        if self._launcher is None:
            return super().spawn(argv, env=env, cwd=cwd)
        return self._launcher.start(argv, env=env, cwd=cwd)

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket, whether the holder's program has it or the user's."""
        options = super().socket_options(local_port, remote_port)
        if options is None and self._launcher is not None:
            return self._launcher.socket_options(local_port, remote_port)
        return options

    def write_sysctl(self, name: str, value: str) -> None:
        """See that a sysctl has this value; it was set at the container's creation."""
        require_sysctl(self, name, value)


class ContainerRouter(AgentRouter):
    """The router in a container; fulfils ``ports.Router``.

    Args:
        channel: To its agent.
        addresses: What the other nodes know it by.
        client: As for ``AgentRouter``.
        server: The same.
        inside: What its programs see.
        shared: The folder that the containers share with the caller.
    """

    def __init__(
        self,
        channel: Channel,
        addresses: Addresses,
        client: ContainerNode,
        server: ContainerNode,
        inside: Inside,
        shared: Path,
    ) -> None:
        super().__init__(channel, addresses, client, server, inside)
        self._shared = shared
        self._captures = 0
        self._wanted: Path | None = None
        """Where the files of the running capture shall be at its end."""

    def write_sysctl(self, name: str, value: str) -> None:
        """See that a sysctl has this value; it was set at the container's creation."""
        require_sysctl(self, name, value)

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """Capture both interfaces into the shared folder; the files move to ``folder`` at the end."""
        self._captures += 1
        name = str(self._captures)
        shared_path(self._shared, name)
        super().start_capture(
            Path(FOLDER, CAPTURES, name),
            filter_expression=filter_expression,
            ring_bytes=ring_bytes,
            limit_bytes=limit_bytes,
        )
        self._wanted = folder.absolute()

    def flush_capture(self) -> CaptureSummary:
        """Write what was caught until now, and go on."""
        return _moved(super().flush_capture(), self._shared / CAPTURES / str(self._captures))

    def stop_capture(self) -> CaptureSummary:
        """Drain, close, summarise, and bring the files.

        Raises:
            EnvironmentNotReady: they could not be written.
        """
        try:
            summary = super().stop_capture()
        except EnvironmentNotReady as error:
            # They are in the folder that the containers share until now, whatever folder was wanted.
            place = f"{self._shared.parent}, or set XDG_RUNTIME_DIR to a folder with more"
            raise EnvironmentNotReady(error.message, fix=f"free some space in {place}") from error
        wanted = self._wanted or Path()
        self.salvage()
        return _moved(summary, wanted)

    def salvage(self) -> None:
        """Bring what a capture has written so far to where it was wanted, whatever became of the router."""
        if self._wanted is None:
            return
        for path in sorted(Path(self._shared, CAPTURES, str(self._captures)).iterdir()):
            # Copied: the file belongs to root where the engine runs as root, and the copy to the caller.
            shutil.copyfile(path, self._wanted / path.name)
            path.unlink()
        self._wanted = None


def _moved(summary: CaptureSummary, folder: Path) -> CaptureSummary:
    """The same with its files in another folder."""
    return replace(
        summary,
        files={side: folder / path.name for side, path in summary.files.items()},
        pieces={
            side: tuple(replace(one, path=folder / one.path.name) for one in pieces)
            for side, pieces in summary.pieces.items()
        },
    )
