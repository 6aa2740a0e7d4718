"""The router as a container of its own, between two networks of the user's, driven over HTTP."""

import contextlib
import secrets
import time
from collections.abc import Sequence
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from lab.core.errors import InvalidRun, LabError, UsageError
from lab.core.fault import Cut, Scope
from lab.core.flow import FourTuple
from lab.testbed.docker import engine as engines
from lab.testbed.docker.cleanup import reaper
from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.images import image
from lab.testbed.docker.labels import labels
from lab.testbed.names import ROUTER
from lab.testbed.ports import PassingFlow
from lab.testcontainers.answers import FaultState, Verdict
from lab.testcontainers.bridges import subnets
from lab.testcontainers.control import Calm, CutFlow, member
from lab.testcontainers.finding import FLOW_TIMEOUT_S, Finder
from lab.testcontainers.http import ControlOverHttp
from lab.testcontainers.leading import lead
from lab.testcontainers.waiting import ControllerWaitStrategy

PORT = 8474
HEARTBEAT_S = 10.0
_LOOPBACK = "127.0.0.1"
_INTERFACES_WITHIN_S = 30

_SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}
_SYSCTLS_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.all.forwarding": "1"}


class Router(DockerContainer):
    """The lab's router, with its control API on a port of 127.0.0.1 that the engine chooses.

    Everything about it goes over HTTP, as from any other language: ``url`` and ``token`` are all that is needed.
    Where this process ends, whatever is cut heals, and the container is removed.

    Args:
        left: The client's network, created; not an internal one.
        right: The server's.
        heartbeat_s: How long this process may be silent before everything heals.
        firewall: auto, iptables or nftables.
        more: As for ``DockerContainer``.

    Raises:
        EnvironmentNotReady: no engine.
        UsageError: one network was given twice.
    """

    def __init__(
        self,
        left: Network,
        right: Network,
        *,
        heartbeat_s: float = HEARTBEAT_S,
        firewall: str = "auto",
        **more: Any,
    ) -> None:
        if left is right:
            raise UsageError("A router is between two networks; one was given twice.", fix="give two")
        with engines.connect() as engine:
            engine.require_local()
            engines.arrange_ryuk(engine)
        super().__init__(image.lab_image(), network=left, network_aliases=[ROUTER], **more)
        # The prefix of a user's registry is not for the lab's image.
        self.image = image.lab_image()
        self._left, self._right = left, right
        self._heartbeat_s = heartbeat_s
        self._firewall = firewall
        self._token = secrets.token_urlsafe(24)
        self._ends = contextlib.ExitStack()
        self._control: ControlOverHttp | None = None
        self._calm: Calm | None = None
        self._cuts: dict[FourTuple, float] = {}
        """When each was cut, CLOCK_MONOTONIC."""

        self._subnets: tuple[Sequence[str], Sequence[str]] = ((), ())

    def start(self) -> Self:
        """Start it, on both networks; returns once its controller answers and captures.

        Raises:
            EnvironmentNotReady: no image, or the controller does not come up.
            UsageError: a network is not created, or is an internal one.
        """
        try:
            with engine_errors("starting the router"):
                self._start()
        except BaseException:
            with contextlib.suppress(LabError):
                self.stop()
            raise
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Remove it; idempotent."""
        with contextlib.suppress(InvalidRun), engine_errors("removing the router"):
            self._ends.close()
            super().stop(force=force, delete_volume=delete_volume)
        self._container = self._control = self._calm = None
        self._cuts.clear()

    def get_container_host_ip(self) -> str:
        """Where its port is published, and nowhere else."""
        return _LOOPBACK

    def get_exposed_port(self, port: int) -> int:
        """The published port."""
        return int(self.get_docker_client().port(self.get_container_id(), port))

    @property
    def url(self) -> str:
        """The control API's, as ``http://127.0.0.1:32768``."""
        return f"http://{_LOOPBACK}:{self.get_exposed_port(PORT)}"

    @property
    def token(self) -> str:
        """What every request but ``GET /healthz`` carries: ``Authorization: Bearer TOKEN``."""
        return self._token

    @property
    def control(self) -> ControlOverHttp:
        """Its controller."""
        if self._control is None:
            raise UsageError("The router is not up.", fix="use it in a with statement, or start() it")
        return self._control

    def lead(self, *containers: DockerContainer) -> None:
        """Send what running containers exchange with the other side through this router.

        For containers on one of its networks. Their images and capabilities stay as they are: a container of the lab's
        joins each one's network for a moment and sets its routes.

        Raises:
            UsageError: a container does not run, or is on neither network or on both.
        """
        for container in containers:
            lead(container, self, (self._left.name, self._right.name), self._subnets)

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass, oldest first."""
        return self.control.flows()

    def flow(
        self, server_port: int | None = None, which: str | int | None = None, *, timeout_s: float = FLOW_TIMEOUT_S
    ) -> FourTuple:
        """An established flow that is not cut, waited for; one that both ends have given up may still count as one.

        Args:
            server_port: The port that it goes to; any where None.
            which: ``first`` or ``newest`` where several match, or the port that it leaves; None insists on exactly one.
            timeout_s: How long to wait for one.

        Raises:
            UsageError: none came, or several match.
            TimeoutError: none came after one was cut.
        """
        __tracebackhide__ = True
        return Finder(self.control, cuts=self._cuts).find(server_port, which, timeout_s)

    def cut(
        self,
        flow: FourTuple | None = None,
        *,
        port: int | None = None,
        which: str | int | None = None,
        direction: Cut | str = Cut.BOTH,
        scope: Scope | str = Scope.FLOW,
        heal_after_s: float | None = None,
    ) -> CutFlow:
        """Cut one established flow: its packets vanish, nothing is closed, new connections pass.

        The first cut waits until the capture is a second old, so that the hole can be proved.

        Args:
            flow: One of ``flows``; where None, the one that ``port`` and ``which`` say, waited for as in ``flow``.
            port: The server's.
            which: first, newest, or the client's port.
            direction: both, forward (to the server) or return.
            scope: flow, or host: everything between the two, new connections too.
            heal_after_s: Heal by itself.

        Raises:
            UsageError: no such flow, several, or it is cut in another way already.
        """
        if flow is not None and (port is not None or which is not None):
            raise UsageError("A flow and what to choose one by were both given.", fix="give one of them")
        wanted = member(Cut, direction), member(Scope, scope)
        __tracebackhide__ = True
        chosen, control = flow or self.flow(port, which), self.control
        assert self._calm is not None
        self._calm.wait()
        state = control.cut(chosen, *wanted, heal_after_s)
        self._cuts[chosen] = time.monotonic() - (time.time() - state.cut_at)
        return CutFlow(control, state)

    def heal(self) -> Sequence[FaultState]:
        """Heal everything that is cut; the faults that were in force."""
        return self.control.heal_all()

    def verdict(self, cut: CutFlow | str) -> Verdict:
        """Whether the hole was a hole, as far as the router can prove it.

        Args:
            cut: From ``cut``, or a fault's id.
        """
        return self.control.verdict(cut if isinstance(cut, str) else cut.id)

    def captures(self, side: str) -> bytes:
        """What was captured on one side until now, as pcapng: left (towards the client) or right."""
        return self.control.capture(side)

    def _start(self) -> None:
        with engines.connect() as engine:
            image.require_image(engine)
            self._subnets = subnets(engine, self._left), subnets(engine, self._right)
            watch = reaper.watch(engine, self.image)
        self._ends.callback(watch.close)
        waiting, self._wait_strategy = self._wait_strategy, None
        try:
            super().start()
        finally:
            self._wait_strategy = waiting
        self._right.connect(self.get_container_id(), [ROUTER])
        self._control = self._ends.enter_context(contextlib.closing(ControlOverHttp(self.url, self._token)))
        ControllerWaitStrategy().wait_until_ready(self)
        self._calm = Calm.begun()
        self._ends.enter_context(self._control.beating(self._heartbeat_s))
        if waiting is not None:
            waiting.wait_until_ready(self)
        watch.wait()

    def _configure(self) -> None:
        """What it is made with; what the user gave stays."""
        left, right = self._subnets
        ipv6 = all(any(":" in subnet for subnet in side) for side in self._subnets)
        ours: dict[str, Any] = {
            "cap_drop": ["ALL"],
            "cap_add": ["NET_ADMIN", "NET_RAW"],
            "security_opt": ["no-new-privileges:true"],
        }
        given = self._kwargs
        sysctls = {**_SYSCTLS, **(_SYSCTLS_IPV6 if ipv6 else {}), **given.get("sysctls", {})}
        marks = {**given.get("labels", {}), **labels(secrets.token_hex(4), ROUTER)}
        self._kwargs = {**ours, **given, "sysctls": sysctls, "labels": marks}
        self.with_env("LAB_TOKEN", self._token)
        self.ports[str(PORT)] = (_LOOPBACK,)  # type: ignore[assignment]  # the SDK's way to say on which address
        self.with_command(
            ["lab.control.serve", "--listen", f"0.0.0.0:{PORT}", "--left", left[0], "--right", right[0],
             "--wait", str(_INTERFACES_WITHIN_S), "--firewall", self._firewall,
             "--heartbeat", str(self._heartbeat_s)]
        )  # fmt: skip
