"""A running container of the user's, joined by one of the lab's that can cut one of its flows.

::

    user's container          the lab's container (same network namespace)        caller
    its programs ------ sockets, rules, sink, capture ------ agent -------------- Attachment

The agent restores the namespace when it ends, for whatever reason. Where it was killed, ``parting`` does: called here,
by the reaper that watches over this process, or by ``lab clean``.
"""

import contextlib
import http
import http.client
import ipaddress
import shutil
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.core.fault import Fault, Matched
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketSample
from lab.testbed.agent.hosted import CAPTURE, FIREWALL, pack
from lab.testbed.agent.nodes import AgentNode
from lab.testbed.agent.rpc import Channel
from lab.testbed.docker import engine as engines
from lab.testbed.docker import refusals
from lab.testbed.docker.cleanup import reaper
from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.images import image
from lab.testbed.docker.inner.seat import CAPTURES, FOLDER, Nic, Seat
from lab.testbed.docker.labels import labels
from lab.testbed.docker.reception import Reception, shared_path
from lab.testbed.docker.sidecar import parting
from lab.testbed.docker.sidecar.attached import NODE
from lab.testbed.docker.sidecar.target import find_target
from lab.testbed.docker.wire import Api, Refused
from lab.testbed.names import CLIENT, Addresses
from lab.testbed.ports import CaptureSummary, CutReceipt, SocketTrack
from lab.testbed.runtime import runtime_folder

if TYPE_CHECKING:
    from docker.models.containers import Container

_UP_TIMEOUT_S = 60.0
_DRAIN_TIMEOUT_S = 120.0
_MODULE = "lab.testbed.docker.sidecar.attached"
_READ_ONLY = ("/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sysrq-trigger")
"""An engine's own list without /proc/sys: the sink may need IPv6 switched on for its device."""

_FOREIGN_FOLDER = "DAC_OVERRIDE"
"""Capability to write captures into the folder that the caller shares, which is the caller's alone."""

_FILES = "1"
"""The one folder of captures."""


class Attachment:
    """The lab's container in a user's network namespace; a context manager that restores it.

    Args:
        target: Name or id of a running container.
        firewall: auto, nftables or iptables; auto takes the first where the kernel has it.

    Raises:
        UsageError: no such container, it does not run, or the lab is attached to it already.
        Unsupported: it has the host's network, or the engine is not on this kernel.
        EnvironmentNotReady: no engine, no image, or the engine refuses.
    """

    def __init__(self, target: str, firewall: str = "auto") -> None:
        self._closed = False
        self._sidecar: Container | None = None
        self._watch: reaper.Watch | None = None
        self._node: AgentNode | None = None
        self._wanted: Path | None = None
        self.restored_by_other = False
        """Once closed: whether the lab's container was killed, and another one had to restore the namespace."""

        self._stack = contextlib.ExitStack()
        try:
            self._engine = self._stack.enter_context(engines.connect())
            self._engine.require_local()
            self._target = find_target(self._engine, target)
            self.name = str(self._target.name)
            """Of the user's container."""

            self._image = image.require_image(self._engine)
            engines.arrange_ryuk(self._engine)
            self._watch = reaper.watch(self._engine, self._image)
            self._shared = self._stack.enter_context(runtime_folder())
            self._nics = self._bring_up(firewall)
            self._watch.wait()
        except BaseException:
            # What cannot be put back now, the reaper puts back at this process's end.
            with contextlib.suppress(LabError):
                self.close()
            raise

    @property
    def node(self) -> AgentNode:
        """The namespace; its end of a flow is the client, whichever end it is."""
        assert self._node is not None
        return self._node

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the container."""
        return self.node.sockets()

    def interface(self, local: Endpoint, remote: Endpoint) -> str:
        """The interface that has a socket's address.

        Raises:
            Unsupported: its packets do not leave by one, or not by way of the routing tables.
        """
        addresses = {address: nic.name for nic in self._nics for address in nic.addresses}
        end = ipaddress.ip_address(remote.address)
        if remote.address in addresses or end.is_loopback:
            raise Unsupported("Both ends of this flow are in the container; its packets never leave it.")
        if local.address not in addresses or end.is_link_local:
            raise Unsupported(f"No interface of the container has {local.address} for flows to {remote.address}.")
        if self.node.ask("is_bound_to_device", local, remote):
            raise Unsupported(
                "The program has bound this socket to a device (SO_BINDTODEVICE), so its packets cannot be led away."
            )
        return addresses[local.address]

    def prepare(self, fault: Fault, interface: str) -> None:
        """Claim the namespace, capture, follow the flow's socket, and build the rules; nothing is dark yet.

        Args:
            fault: With the sink at the container's end.
            interface: The one that the flow uses.

        Raises:
            UsageError: another attachment has claimed it, or a killed one left something.
            Unsupported: the kernel lacks what the hole needs.
        """
        mine, other = _ends(fault)
        self.node.ask("claim", interface)
        shared_path(self._shared, _FILES)
        expression = f"icmp or icmp6 or (tcp and host {other.address} and port {other.port} and port {mine.port})"
        self.node.service(CAPTURE).call("start", Path(FOLDER, CAPTURES, _FILES), expression, 0)
        self.node.watch(FourTuple(mine, other))
        self.node.service(FIREWALL).call("prepare", pack(fault))

    @property
    def firewall(self) -> str:
        """Which implementation owns the rules."""
        return str(self.node.service(FIREWALL).call("name"))

    def cut(self, fault: Fault) -> CutReceipt:
        """Put the fault in force, both directions in one commit; idempotent."""
        return CutReceipt(*self.node.service(FIREWALL).call("cut", pack(fault)))

    def heal(self, fault: Fault) -> CutReceipt:
        """Take it back, counters kept; idempotent."""
        return CutReceipt(*self.node.service(FIREWALL).call("heal", pack(fault)))

    def matched(self, fault: Fault) -> Matched:
        """Packets that the rules led away or dropped."""
        matched: Matched = self.node.service(FIREWALL).call("matched", pack(fault))
        return matched

    def track(self, fault: Fault) -> SocketTrack:
        """What became of the container's socket so far."""
        return self.node.track(FourTuple(*_ends(fault)))

    def nudge(self, fault: Fault) -> None:
        """Send one old acknowledgment of the flow from the container's end, past its TCP."""
        self.node.nudge(*_ends(fault))

    def stop_capture(self, folder: Path) -> CaptureSummary:
        """Drain, close, summarise, and bring the files to a folder: interface.pcapng and sink.pcapng."""
        summary: CaptureSummary = self.node.service(CAPTURE).call("stop", timeout_s=_DRAIN_TIMEOUT_S)
        self.salvage(folder)
        return replace(summary, files={side: folder / path.name for side, path in summary.files.items()})

    def salvage(self, folder: Path) -> None:
        """Bring what a capture has written so far, whatever became of the lab's container."""
        for path in Path(self._shared, CAPTURES, _FILES).iterdir():
            # Copied: the file belongs to root where the engine runs as root, and the copy to the caller.
            shutil.copyfile(path, folder / path.name)

    def require_running(self) -> None:
        """See that both containers still run.

        Raises:
            InvalidRun: one has ended.
        """
        with engine_errors("looking at the container"):
            self._target.reload()
            if self._target.status not in ("running", "paused"):
                raise InvalidRun(f"The container {self.name} ended while its flow was cut off: {self._target.status}.")

    def close(self) -> None:
        """End the lab's container and see that the namespace is restored; idempotent.

        Raises:
            EnvironmentNotReady: it could not be restored.
        """
        if self._closed:
            return
        if self._node is not None:
            self._node.close()
        if self._sidecar is not None:
            self._part()
        self._stack.close()
        if self._watch is not None:
            # Not where something failed above: then it is the reaper's, at this process's end.
            self._watch.close()
        self._closed = True

    def __enter__(self) -> Self:
        """The attachment itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()

    def _bring_up(self, firewall: str) -> tuple[Nic, ...]:
        calls, far_calls = socket.socketpair()
        events, far_events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Nothing is started in there, so there will be no events.
        self._stack.callback(events.close)
        self._node = AgentNode(CLIENT, Channel(calls, "The attached agent"), Addresses("", ""))
        seat = Seat({}, {}, leads_outside=True, offloads=True, firewall=firewall, left="", right="")
        try:
            with Reception(self._shared, _UP_TIMEOUT_S) as reception:
                self._start_sidecar()
                hellos = reception.receive([NODE], self._require_sidecar)
                fds = [far_calls.fileno(), far_events.fileno()]
                reception.seat({NODE: seat}, {NODE: fds}, self._require_sidecar)
        finally:
            far_calls.close()
            far_events.close()
        return hellos[NODE].nics

    def _start_sidecar(self) -> None:
        from docker.types import Mount

        api = self._engine.client.api
        with engine_errors("joining the container"):
            host = api.create_host_config(
                network_mode=f"container:{self._target.id}",
                cap_drop=["ALL"],
                cap_add=[*parting.CAPABILITIES, _FOREIGN_FOLDER],
                mounts=[Mount(FOLDER, str(self._shared), "bind")],
            )
            # The SDK has no word for it.
            host["ReadonlyPaths"] = list(_READ_ONLY)
            marks = {**labels("", parting.ATTACH), parting.TARGET: str(self._target.id)}
            made = api.create_container(self._image, command=[_MODULE], labels=marks, host_config=host)
            self._sidecar = self._engine.client.containers.get(made["Id"])
            self._sidecar.start()

    def _require_sidecar(self, _: str) -> None:
        assert self._sidecar is not None
        with engine_errors("looking at the lab's container"):
            self._sidecar.reload()
            if self._sidecar.status in ("created", "running"):
                return
            said = self._sidecar.logs(tail=8).decode("utf-8", "replace").strip()
        raise EnvironmentNotReady(f"The lab's container in {self.name}'s network ended: {said or 'no output'}")

    def _part(self) -> None:
        assert self._sidecar is not None
        api = Api(self._engine.socket_path, ".".join(map(str, self._engine.api_version)))
        try:
            self.restored_by_other = parting.part(api, str(self._sidecar.id), self._sidecar.labels)
        except Refused as refused:
            if refused.status != http.HTTPStatus.NOT_FOUND:
                raise refusals.explain(refused.message) from refused
        except parting.NotRestored as error:
            raise EnvironmentNotReady(
                f"The network of {self.name} could not be restored: {error}.", fix="lab clean"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise refusals.lost(f"restoring {self.name} got no answer ({error})") from error


def _ends(fault: Fault) -> tuple[Endpoint, Endpoint]:
    """The container's end of the flow, and the other one."""
    sunk = fault.placement.sunk
    if sunk is None:
        raise UsageError(f"A fault at one end was expected, not {fault.placement.value}.")
    return fault.flow.ends(sunk)
