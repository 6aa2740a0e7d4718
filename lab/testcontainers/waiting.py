"""Wait strategies: for a listener that the kernel lists, and for the router's controller."""

import ipaddress
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from testcontainers.core.waiting_utils import WaitStrategy, WaitStrategyTarget

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.core.socket import SocketSample, TcpState
from lab.testbed.docker.engine import engine_errors
from lab.testbed.names import NAME_SERVER
from lab.testcontainers.joining import PodClient

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

POLL_S = 0.02
LOOK_S = 0.25
"""How often the engine is asked whether the container still runs."""

LAST_LINES = 5
_TAIL = "Its last lines: "
LISTEN_TIMEOUT_S = 60
_ALIVE = ("created", "running", "restarting")


class ListeningWaitStrategy(WaitStrategy):
    """Waits until a container of a ``Testbed`` listens, as its kernel has it.

    Needs neither a shell in the image nor a published port; nothing connects to the server.

    Args:
        ports: All of these; without any, the first socket that other hosts can connect to will do.
    """

    def __init__(self, *ports: int) -> None:
        super().__init__()
        self._ports = ports
        self.with_startup_timeout(LISTEN_TIMEOUT_S)

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        """Return once it listens.

        Raises:
            UsageError: it is in no testbed, has ended, or listens elsewhere or nowhere.
        """
        client = cast("Any", container).get_docker_client()
        if not isinstance(client, PodClient):
            raise UsageError(
                "ListeningWaitStrategy asks the kernel of a testbed's node, and this container is in no testbed.",
                fix="use it within Testbed, or PortWaitStrategy of Testcontainers",
            )
        deadline = time.monotonic() + self._startup_timeout
        watch = Watch(client.node.name, cast("DockerContainer", container))
        while not self._satisfied(found := listeners(client.node.sockets())):
            watch.refuse_end("listened" + self._where())
            if time.monotonic() > deadline:
                raise UsageError(self._complaint(client.node.name, found), fix="name the port that it listens on")
            time.sleep(POLL_S)

    def _satisfied(self, found: Sequence[SocketSample]) -> bool:
        open_ports = {one.local.port for one in found if not is_loopback(one)}
        return set(self._ports) <= open_ports if self._ports else bool(open_ports)

    def _where(self) -> str:
        return f" on port {', '.join(map(str, self._ports))}" if self._ports else ""

    def _complaint(self, node: str, found: Sequence[SocketSample]) -> str:
        seen = ", ".join(sorted({str(one.local) for one in found})) or "no port at all"
        return (
            f"The {node}'s container runs, but after {self._startup_timeout:g} s nothing in it listens"
            f"{self._where()} for other hosts; it listens on {seen}."
        )


class ControllerWaitStrategy(WaitStrategy):
    """Waits until the controller of a ``Router`` answers and captures."""

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        """Return once it does.

        Raises:
            EnvironmentNotReady: it ended, or does not come up.
        """
        router = cast("Any", container)
        deadline = time.monotonic() + self._startup_timeout
        watch = Watch("router", router)
        while True:
            health = router.control.health() or {}
            if health.get("status") == "ok" and health.get("capture") == "running":
                return
            ended = watch.ended()
            if ended or health.get("capture") == "failed" or time.monotonic() > deadline:
                state = ended or f"it answers {dict(health)}" if health or ended else "it does not answer"
                raise EnvironmentNotReady(
                    f"The router's controller did not come up: {state}. {tail(router)}", fix="lab image build"
                )
            time.sleep(POLL_S)


class Watch:
    """Asks the engine now and then whether a container still runs.

    Args:
        name: What it is, for messages.
        container: Started.
    """

    def __init__(self, name: str, container: "DockerContainer") -> None:
        self._name = name
        self._container = container
        self._look_at = 0.0

    def ended(self) -> str:
        """How it ended, empty while it runs."""
        now = time.monotonic()
        if now < self._look_at:
            return ""
        self._look_at = now + LOOK_S
        return how_ended(self._container)

    def refuse_end(self, verb: str) -> None:
        """Raise where it has ended.

        Raises:
            UsageError: it has, before it did what is waited for.
        """
        __tracebackhide__ = True
        if ended := self.ended():
            raise UsageError(
                f"The {self._name}'s container ended ({ended}) before it {verb}. {tail(self._container)}",
                fix="let its command run for as long as the test",
            )


def how_ended(container: "DockerContainer") -> str:
    """Exit status of a container that has ended, empty while it runs."""
    with engine_errors("looking at a container"):
        inner = container.get_wrapped_container()
        inner.reload()
        if inner.status in _ALIVE:
            return ""
        state = inner.attrs["State"]
    memory = ", out of memory" if state.get("OOMKilled") else ""
    return f"exit status {state['ExitCode']}{memory}"


def tail(container: "DockerContainer", most: int = LAST_LINES) -> str:
    """The last lines of a container's output, for a message."""
    with engine_errors("reading a container's output"):
        said = container.get_wrapped_container().logs(tail=most).decode("utf-8", "replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _TAIL + " | ".join(lines) if lines else "It printed nothing."


def last_line(container: "DockerContainer") -> str:
    """What a container printed last, for a message."""
    said = tail(container, 1)
    return "its last line: " + said.removeprefix(_TAIL) if said.startswith(_TAIL) else "it printed nothing"


def listeners(sockets: Sequence[SocketSample]) -> list[SocketSample]:
    """The listening ones of the container's programs."""
    return [one for one in sockets if one.state is TcpState.LISTEN and one.local.address != NAME_SERVER]


def is_loopback(listener: SocketSample) -> bool:
    """Whether only the container itself can connect to it."""
    return ipaddress.ip_address(listener.local.address).is_loopback
