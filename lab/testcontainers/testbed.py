"""A testbed around two containers of the user's."""

import contextlib
import secrets
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from lab.core.errors import UsageError
from lab.core.fault import Cut, Scope
from lab.core.flow import FourTuple
from lab.testbed.docker import engine as engines
from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.labels import labels
from lab.testbed.docker.nodes import ContainerNode, ContainerRouter
from lab.testbed.docker.testbed import DockerTestbed
from lab.testbed.names import CLIENT, SERVER
from lab.testbed.ports import PassingFlow, TestbedSpec
from lab.testcontainers import guest
from lab.testcontainers.answers import FaultState, Verdict
from lab.testcontainers.control import Calm, CutFlow, member
from lab.testcontainers.finding import FLOW_TIMEOUT_S, Finder
from lab.testcontainers.here import ControlHere
from lab.testcontainers.joining import PodClient, aliases, require_joinable
from lab.testcontainers.sockets import in_words
from lab.testcontainers.waiting import POLL_S

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

GONE_TIMEOUT_S = 60.0


class Testbed:
    """Two containers of the user's with a router between them; a context manager.

    They are given as they are before ``start()``, and run unmodified, without a capability that they would not have
    anyway. The names client, router and server resolve in them, and their network aliases. The server starts first,
    and the client once it is ready: by the server's own wait strategy, else when it listens.

    Args:
        client: Opens the connections.
        server: Accepts them.
        sysctls: Per node (client, router, server): kernel settings of its network, as
            ``{"client": {"net.ipv4.tcp_retries2": "5"}}``.
        ipv6: Which family the names resolve to; both are always there.
        out: Keeps the captures of both sides of the router and the containers' output; None keeps nothing.

    Raises:
        UsageError: what was given cannot be run in a testbed, with what to do instead.
    """

    __test__ = False

    def __init__(
        self,
        client: "DockerContainer",
        server: "DockerContainer",
        *,
        sysctls: Mapping[str, Mapping[str, str]] | None = None,
        ipv6: bool = False,
        out: Path | str | None = None,
    ) -> None:
        if client is server:
            raise UsageError("One container was given as client and as server.", fix="give two")
        self._containers = {SERVER: server, CLIENT: client}
        """In the order of their start."""

        for node, container in self._containers.items():
            require_joinable(node, container)
        self._aliases = aliases(self._containers)
        self._spec = TestbedSpec(ipv6=ipv6, sysctls=sysctls or {})
        self._out = None if out is None else Path(out)
        self._rootless = False
        self._stack = contextlib.ExitStack()
        self._up: tuple[DockerTestbed, ControlHere, Calm] | None = None
        self._place: tuple[str, str] | None = None
        self._cuts: dict[FourTuple, str] = {}
        self._cut_at: dict[FourTuple, float] = {}
        self._lock = threading.Lock()

    def start(self) -> Self:
        """Bring it up: the network, the server, the client.

        Raises:
            EnvironmentNotReady: no engine, no image, or the engine refuses.
            UsageError: a container ends at once, or the server never listens.
            Unsupported: the engine is not on this kernel, or the kernel lacks a sysctl.
        """
        if self._up is not None:
            raise UsageError("The testbed is up already.")
        try:
            with engine_errors("bringing up the testbed"):
                self._require_images()
                self._bring_up()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove everything; idempotent."""
        self._stack.close()
        self._up, self._place = None, None
        self._cuts.clear()
        self._cut_at.clear()

    def __enter__(self) -> Self:
        """Bring it up."""
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        """Remove everything."""
        self.stop()

    @property
    def client(self) -> ContainerNode:
        """The client's network: its sockets, counters, address."""
        return self._parts[0].client

    @property
    def server(self) -> ContainerNode:
        """The server's network."""
        return self._parts[0].server

    @property
    def router(self) -> ContainerRouter:
        """The only path between them."""
        return self._parts[0].router

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass the router, oldest first; one that both ends have given up may still be listed."""
        return self._parts[1].flows()

    def flow(
        self, server_port: int | None = None, which: str | int | None = None, *, timeout_s: float = FLOW_TIMEOUT_S
    ) -> FourTuple:
        """An established flow of the client's that is not cut, waited for.

        After a cut it is therefore the client's next connection: that the client has noticed.

        Args:
            server_port: The port that it goes to; any where None.
            which: ``first`` or ``newest`` where several match, or the port that it leaves; None insists on exactly one.
            timeout_s: How long to wait for one.

        Raises:
            UsageError: none came, or several match.
            TimeoutError: none came after one was cut: the client has not noticed, or does not come back.
        """
        __tracebackhide__ = True
        testbed, control, _ = self._parts
        finder = Finder(control, testbed.client, self._containers, self._cut_at)
        return finder.find(server_port, which, timeout_s)

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

        A second cut of the same flow is the same fault. The first cut of a testbed waits until the capture is a second
        old, so that the hole can be proved.

        Args:
            flow: From ``flow``; where None, the one that ``port`` and ``which`` say, waited for as there.
            port: The server's.
            which: first, newest or the client's port.
            direction: both, forward (to the server) or return.
            scope: flow, or host: everything between the two, new connections too.
            heal_after_s: Heal by itself.

        Returns:
            The fault: heal it, read its counters and its verdict; as a context manager it heals at its end.

        Raises:
            UsageError: no such flow, several, or it is cut in another way already.
        """
        if flow is not None and (port is not None or which is not None):
            raise UsageError("A flow and what to choose one by were both given.", fix="give one of them")
        __tracebackhide__ = True
        wanted = member(Cut, direction), member(Scope, scope)
        chosen = flow or self.flow(port, which)
        testbed, control, calm = self._parts
        for node in (testbed.client, testbed.server):
            node.watch(chosen)
        calm.wait()
        state = control.cut(chosen, *wanted, heal_after_s)
        self._cuts[chosen] = state.id
        self._cut_at[chosen] = control.cut_at(state.id)
        return CutFlow(control, state)

    def heal(self) -> Sequence[FaultState]:
        """Heal everything that is cut; the faults that were in force."""
        return self._parts[1].heal_all()

    def verdict(self, cut: CutFlow | None = None) -> Verdict:
        """Whether the hole was a hole, as far as the router can prove it.

        Args:
            cut: From ``cut``; the last one where None.

        Raises:
            UsageError: nothing was cut.
        """
        if cut is None and not self._cuts:
            raise UsageError("Nothing was cut that could be judged.", fix="testbed.cut() first")
        return self._parts[1].verdict(list(self._cuts.values())[-1] if cut is None else cut.id)

    def wait_until_gone(self, flow: FourTuple | CutFlow, end: str = CLIENT, timeout_s: float = GONE_TIMEOUT_S) -> float:
        """Wait until the kernel of one end has let go of a flow that was cut; seconds from the cut.

        Args:
            flow: The flow, or what ``cut`` gave.
            end: client or server.
            timeout_s: From now on.

        Raises:
            UsageError: it was not cut.
            TimeoutError: the kernel still has it, with what its socket does.
        """
        __tracebackhide__ = True
        flow = flow.flow if isinstance(flow, CutFlow) else flow
        testbed, control, _ = self._parts
        if flow not in self._cuts:
            raise UsageError(f"{flow} was not cut here.", fix="give a flow that testbed.cut() was given")
        if end not in (CLIENT, SERVER):
            raise UsageError(f"A flow has the ends client and server, not {end!r}.")
        node, deadline = (testbed.client if end == CLIENT else testbed.server), time.monotonic() + timeout_s
        while (track := node.track(flow)).gone_at is None:
            if time.monotonic() > deadline:
                doing = in_words(track.samples, control.cut_at(self._cuts[flow]), time.monotonic())
                raise TimeoutError(f"After {timeout_s:g} s the {end}'s kernel still has {flow}: {doing}.")
            time.sleep(POLL_S)
        return track.gone_at - control.cut_at(self._cuts[flow])

    def captures(self, side: str) -> bytes:
        """What was captured on one side of the router until now, as pcapng: left (towards the client) or right."""
        if side not in ("left", "right"):
            raise UsageError(f"The router has the sides left and right, not {side!r}.")
        return self._parts[1].capture(side)

    def serve(self) -> tuple[str, str]:
        """The control API of this testbed, for other processes: its URL on 127.0.0.1, and the token; until the end."""
        from lab.control.address import Address
        from lab.control.server import serving

        with self._lock:
            if self._place is None:
                token = secrets.token_urlsafe(24)
                controller = self._parts[1].controller
                where = self._stack.enter_context(serving(controller, Address("127.0.0.1", 0), token))
                self._place = f"http://{where}", token
            return self._place

    @property
    def _parts(self) -> tuple[DockerTestbed, ControlHere, Calm]:
        if self._up is None:
            raise UsageError("The testbed is not up.", fix="use it in a with statement, or start() it")
        return self._up

    def _bring_up(self) -> None:
        from lab.control.controller import Controller

        # Before the testbed: where its router died, what was captured comes out at its end.
        folder = self._out or Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-capture-")))
        folder.mkdir(parents=True, exist_ok=True)
        testbed = self._stack.enter_context(DockerTestbed(self._spec, aliases=self._aliases))
        control = ControlHere(self._stack.enter_context(Controller(testbed.router, folder)))
        control.await_capture()
        self._up = testbed, control, Calm.begun()
        for node in self._containers:
            self._start_container(testbed, node)

    def _start_container(self, testbed: DockerTestbed, node: str) -> None:
        container = self._containers[node]
        place = testbed.server if node == SERVER else testbed.client
        marks = labels(testbed.name, "program")
        inner, reachable = container.get_docker_client(), not self._rootless
        client = PodClient(inner, place, testbed.holder(node), marks, reachable=reachable)
        self._stack.callback(guest.end, container)
        if self._out is not None:
            self._stack.callback(guest.keep_output, container, self._out / f"{node}.log")
        guest.start(container, client)

    def _require_images(self) -> None:
        with engines.connect() as engine:
            engine.require_local()
            self._rootless = engine.is_rootless
            for container in self._containers.values():
                if not engines.has_image(engine, container.image):
                    # As Testcontainers would, but before anything is up.
                    engine.client.images.pull(container.image)
