"""The container testbed, as the caller uses it."""

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.testbed.agent.hosted import CAPTURE, FIREWALL
from lab.testbed.agent.sysctl import HIDDEN
from lab.testbed.agent.wires import Wires
from lab.testbed.docker import engine as engines
from lab.testbed.docker import refusals, settings
from lab.testbed.docker.cleanup import reaper
from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.images import image
from lab.testbed.docker.inner.seat import Hello, Seat
from lab.testbed.docker.inspector import Inspector
from lab.testbed.docker.labels import labels
from lab.testbed.docker.lookout import PROGRAM, Lookout
from lab.testbed.docker.networks import BOTH_FAMILIES, Link, join_link, make_link
from lab.testbed.docker.nodes import ContainerNode, ContainerRouter, Inside
from lab.testbed.docker.outside import find_way
from lab.testbed.docker.pod import Holding, engine_gateways, make_holder, start_holder, why_ended
from lab.testbed.docker.program import Joining, Launcher
from lab.testbed.docker.reception import Reception
from lab.testbed.moving import move
from lab.testbed.names import CLIENT, LEFT, NODES, RIGHT, ROUTER, SERVER, UPLINK, Addresses
from lab.testbed.ports import TestbedSpec
from lab.testbed.runtime import runtime_folder

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

_UP_TIMEOUT_S = 60.0
_MOST_REMOVALS = 8
"""Three nodes, three networks, two ends' programs."""

_SIDES: Mapping[str, tuple[str, ...]] = {CLIENT: (LEFT,), ROUTER: (LEFT, RIGHT), SERVER: (RIGHT,)}
"""Which links each node is on, the uplink apart."""

_FIRST_TO_LAST = (ROUTER, CLIENT, SERVER)
"""The router has two networks to join; the server's is made last."""


@dataclass(frozen=True, slots=True)
class Images:
    """Whose programs run in the nodes: the user's images, or None for the lab's own."""

    client: str | None = None
    server: str | None = None

    def of(self, node: str) -> str | None:
        """The image of a node's programs."""
        return {CLIENT: self.client, SERVER: self.server}.get(node)


class DockerTestbed:
    """Three nodes in containers; fulfils ``ports.Testbed``.

    Args:
        spec: What to bring up.
        images: Whose programs run in there.
        aliases: Further names of nodes, as ``{"db": "server"}``.

    Raises:
        EnvironmentNotReady: no engine, no image, or the engine refuses.
        Unsupported: the engine is not on this kernel, or the kernel lacks a sysctl.
        UsageError: a sysctl that does not exist in a namespace, or a node that does not.
    """

    __test__ = False

    def __init__(
        self,
        spec: TestbedSpec | None = None,
        images: Images | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._spec = spec or TestbedSpec()
        self._images = images or Images()
        self._aliases = aliases or {}
        if unknown := sorted(set(self._spec.sysctls) - set(NODES)):
            raise UsageError(f"There is no node {unknown[0]!r}.", fix=f"use one of {', '.join(NODES)}")
        self._name = secrets.token_hex(4)
        self._lock = threading.RLock()
        self._closed = False
        self._moves = 0
        self._holders: dict[str, DockerContainer] = {}
        self._links: dict[str, Link] = {}
        self._made: dict[str, Link] = {}
        """Those of the links that are the testbed's own: an uplink may be somebody else's network."""

        self._launchers: list[Launcher] = []
        self._router: ContainerRouter | None = None
        self._lookout: Lookout | None = None
        self._watch: reaper.Watch | None = None
        self._stack = contextlib.ExitStack()
        try:
            self._engine = engines.shared()
            self._engine.require_local()
            engines.arrange_ryuk(self._engine)
            self._way = None if self._spec.uplink is None else find_way(self._engine, self._spec.uplink)
            self._image = image.require_image(self._engine)
            for name in (self._images.client, self._images.server):
                engines.require_image(self._engine, name)
            # Before anything is made: from here on a killed process leaves nothing.
            self._watch = reaper.watch(self._engine, self._image)
            self._shared = self._stack.enter_context(runtime_folder())
            self._wires = Wires(NODES)
            self._stack.callback(self._wires.close)
            _alive.add(self)
            self._bring_up()
            self._watch.wait()
        except BaseException:
            self.close()
            raise

    @property
    def backend(self) -> str:
        """Which kind it is."""
        return "docker"

    @property
    def name(self) -> str:
        """What its containers and networks are labelled with."""
        return self._name

    @property
    def client(self) -> ContainerNode:
        """The node that opens the connections."""
        return self._client

    @property
    def router(self) -> ContainerRouter:
        """The node in the middle."""
        assert self._router is not None
        return self._router

    @property
    def server(self) -> ContainerNode:
        """The node that accepts them."""
        return self._server

    def move_client(self) -> str:
        """Give the client other addresses of its link in place of its own."""
        with self._lock:
            self._moves += 1
            return move(self.client, self.router, (self.client, self.router, self.server), self._moves).ipv4

    def interventions(self) -> tuple[str, ...]:
        """What others have done to its containers and networks since it was up.

        Raises:
            InvalidRun: the engine is gone.
        """
        return () if self._lookout is None else self._lookout.seen()

    def holder(self, node: str) -> str:
        """Id of the container that holds a node's network, for others to join."""
        return str(self._holders[node].get_container_id())

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

    def _bring_up(self) -> None:
        with Reception(self._shared, _UP_TIMEOUT_S) as reception:
            self._start_all()
            hellos = reception.receive(NODES, self._require_running)
            reception.seat(
                {node: self._seat(node, hellos) for node in NODES},
                {node: [self._wires.far_calls[node].fileno(), self._wires.far_events.fileno()] for node in NODES},
                self._require_running,
            )
        self._wires.release()
        self._lookout = self._look_out()
        self._make_nodes(hellos)
        if UPLINK in self._links:
            uplink, nics = self._links[UPLINK], hellos[ROUTER].nics
            self.router.translate(uplink.address(nics, 4)[0], uplink.addresses(nics))

    def _look_out(self) -> Lookout:
        lookout = Lookout(
            self._engine,
            self._name,
            [container.get_container_id() for container in self._holders.values()],
            {str(link.network.id): link.name for link in self._made.values()},
        )
        self._stack.callback(lookout.close)
        return lookout

    def _sides(self, node: str) -> tuple[str, ...]:
        """Which links the node is on."""
        return (*_SIDES[node], UPLINK) if node == ROUTER and self._way is not None else _SIDES[node]

    def _start_all(self) -> None:
        """Make the networks and start the holders, each as soon as its first network is there."""
        sides = self._sides(ROUTER)
        with ThreadPoolExecutor(len(sides) + len(NODES), thread_name_prefix="lab-docker") as pool:
            links = {side: pool.submit(self._make_link, side) for side in sides}
            starts = [pool.submit(self._start_holder, node, links) for node in _FIRST_TO_LAST]
            for link in links.values():
                link.result()
            for start in starts:
                start.result()

    def _make_link(self, side: str) -> Link:
        if side == UPLINK and self._way is not None and self._way.network is not None:
            link = join_link(self._engine, self._way.network)
        else:
            marks = labels(self._name, side)
            link = make_link(self._engine, self._link_name(side), marks, leads_outside=side == UPLINK)
            self._made[side] = link
        self._links[side] = link
        return link

    def _start_holder(self, node: str, links: Mapping[str, Future[Link]]) -> None:
        first, *more = self._sides(node)
        holding = Holding(
            node=node,
            image=self._image,
            api=self._engine.api,
            networks=dict(self._network(side, links) for side in (first, *more)),
            labels=labels(self._name, node),
            folder=self._shared,
            sysctls=settings.at_creation(
                node, self._spec.sysctls.get(node, {}), leads_outside=self._leads_outside(node)
            ),
            environment={HIDDEN: os.environ[HIDDEN]} if HIDDEN in os.environ else {},
            workplace=settings.workplace(),
        )
        container = make_holder(holding)
        self._holders[node] = container
        links[first].result()
        start_holder(container, (links[side].result().network for side in more))

    def _link_name(self, side: str) -> str:
        return f"lab-{self._name}-{side}"

    def _network(self, side: str, links: Mapping[str, Future[Link]]) -> tuple[str, str]:
        """Name and families of a link; of an uplink only once it is there."""
        if side != UPLINK:
            return self._link_name(side), BOTH_FAMILIES
        uplink = links[side].result()
        return uplink.name, uplink.families

    def _seat(self, node: str, hellos: Mapping[str, Hello]) -> Seat:
        nics = hellos[node].nics
        sides = {side: self._links[side] for side in self._sides(node)}
        names = {side: link.address(nics, 4)[0] for side, link in sides.items()}
        version = 6 if self._spec.ipv6 else 4
        hosts = {name: self._address(name, hellos, version) for name in NODES}
        hosts |= {alias: hosts[name] for alias, name in self._aliases.items()}
        gateways = {}
        if node != ROUTER:
            gateways = {names[side]: link.addresses(hellos[ROUTER].nics) for side, link in sides.items()}
        elif UPLINK in sides:
            gateways = {names[UPLINK]: engine_gateways(self._holders[ROUTER], sides[UPLINK].name)}
        if node != SERVER and self._spec.uplink is not None and self._spec.uplink.named:
            hosts[self._spec.uplink.host] = self._spec.uplink.address
        return Seat(
            hosts=hosts,
            gateways=gateways,
            leads_outside=False,
            offloads=self._spec.offloads,
            forwards_merged=self._leads_outside(node),
            firewall=self._spec.firewall,
            left=names.get(LEFT, ""),
            right=names.get(UPLINK) or names.get(RIGHT, ""),
            at_once=(FIREWALL, CAPTURE) if node == ROUTER else (),
            preload=() if node == ROUTER else self._spec.preload,
        )

    def _leads_outside(self, node: str) -> bool:
        return node == ROUTER and self._way is not None

    def _address(self, node: str, hellos: Mapping[str, Hello], version: int) -> str:
        address = self._links[_SIDES[node][0]].address(hellos[node].nics, version)[1]
        if not address:
            raise EnvironmentNotReady(
                f"The engine gave the {node} no IPv{version} address.", fix="lab doctor shows what the engine offers"
            )
        return address

    def _make_nodes(self, hellos: Mapping[str, Hello]) -> None:
        self._client, self._server = self._make_end(CLIENT, hellos), self._make_end(SERVER, hellos)
        self._router = ContainerRouter(
            self._wires.channels[ROUTER],
            self._addresses(ROUTER, hellos),
            self._client,
            self._server,
            self._inside(ROUTER, hellos),
            self._shared,
        )
        self._wires.connect({node.name: node for node in (self._client, self._router, self._server)})

    def _make_end(self, node: str, hellos: Mapping[str, Hello]) -> ContainerNode:
        channel, wanted = self._wires.channels[node], self._images.of(node)
        launcher = None
        if wanted is not None:
            holder = self._holders[node].get_container_id()
            joining = Joining(node, wanted, holder, labels(self._name, PROGRAM))

            def inspect(program: str) -> Inspector:
                return Inspector(
                    self._engine, self._image, holder, program, labels(self._name, "inspector"), self._shared
                )

            assert self._lookout is not None
            launcher = Launcher(self._engine, joining, channel, inspect, self._lookout.expect_signal)
            self._launchers.append(launcher)
        return ContainerNode(node, channel, self._addresses(node, hellos), self._inside(node, hellos), launcher)

    def _addresses(self, node: str, hellos: Mapping[str, Hello]) -> Addresses:
        return Addresses(self._address(node, hellos, 4), self._address(node, hellos, 6))

    def _inside(self, node: str, hellos: Mapping[str, Hello]) -> Inside:
        return Inside(hellos[node].environment, settings.workplace())

    def _require_running(self, node: str) -> None:
        reason = why_ended(self._holders[node])
        if reason is not None:
            raise EnvironmentNotReady(
                f"The {node}'s container ended before its node was up: {reason}",
                fix=refusals.UNRESTRICTED if PermissionError.__name__ in reason else None,
            )

    def _take_down(self) -> None:
        """Containers, then the networks that they were on; whatever fails, the rest goes on."""
        with contextlib.ExitStack() as ends:
            ends.enter_context(self._stack)
            ends.callback(self._remove_all)
            if self._router is not None:
                ends.callback(self._router.salvage)
        if self._watch is not None:
            # Not where something failed above: then it is the reaper's to remove, at this process's end.
            self._watch.close()

    def _remove_all(self) -> None:
        """Each network as soon as no node is on it; the engine takes its time for one after the other."""
        programs = [launcher.close for launcher in self._launchers]
        with ThreadPoolExecutor(_MOST_REMOVALS, thread_name_prefix="lab-docker") as pool:
            nodes = {node: pool.submit(_stop, container) for node, container in self._holders.items()}
            others = [pool.submit(close) for close in programs]
            for side, link in self._made.items():
                on_it = [nodes[node] for node in nodes if side in self._sides(node)]
                others.append(pool.submit(_remove_after, on_it, link))
        with engine_errors("removing the testbed"):
            for end in (*nodes.values(), *others):
                end.result()

    def _let_go(self) -> None:
        """In a fork of the caller: the testbed stays the caller's."""
        self._wires.let_go()
        self._closed = True
        # Another thread may have held it at the fork; here there is none to release it.
        self._lock = threading.RLock()


def open_testbed(spec: TestbedSpec | None = None, images: Images | None = None) -> DockerTestbed:
    """A testbed that is up; close it, or use it as a context manager."""
    return DockerTestbed(spec, images)


def _stop(container: "DockerContainer") -> None:
    from docker.errors import NotFound

    with contextlib.suppress(NotFound):
        container.stop()


def _remove_after(removals: list[Future[None]], link: Link) -> None:
    """Remove a network once these containers are gone, or could not be removed."""
    wait(removals)
    link.network.remove()


_alive: "weakref.WeakSet[DockerTestbed]" = weakref.WeakSet()


def _let_go_of_all() -> None:
    for testbed in list(_alive):
        testbed._let_go()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_let_go_of_all)
