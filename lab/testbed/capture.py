"""Both sides of the router on disk: scapy opens the sockets and sets the filter, the bytes go to pcapng undissected.

The only module that touches scapy. A socket receives nothing until its filter and its ring are in place, and what the
kernel counted is held against what was written, so a finished capture is complete or says what it lacks.
"""

import contextlib
import os
import platform
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import scapy.layers.l2  # without the link layers scapy warns of every socket that it cannot tell its type
from scapy.arch.linux import L2ListenSocket
from scapy.config import conf
from scapy.error import Scapy_Exception

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.core.timeline import ClockPair
from lab.pcap.writer import PcapngWriter, Source, Statistics
from lab.testbed.ports import CaptureSummary
from lab.testbed.ring import RETIRE_MS, PacketRing

with contextlib.suppress(OSError):
    # Finds and loads libpcap, which takes longer than all of ``start``; where it is missing, ``start`` says so.
    import scapy.libs.winpcapy  # noqa: F401

DEFAULT_FILTER = "tcp or icmp or icmp6"
"""What experiments judge; neighbour discovery is ICMPv6 and stays in."""

DEFAULT_RING_BYTES = 4 * 1024 * 1024
"""Per side: well over a second of an ordinary experiment, and a hundred testbeds take less than a gigabyte."""

_PROTOCOL_NONE, _PROTOCOL_ALL = 0, 3
"""``ETH_P_ALL`` (linux/if_ether.h); bound to no protocol a packet socket receives nothing."""

_ETHERNET = 1
"""``ARPHRD_ETHER`` (linux/if_arp.h), what veth links are."""

_DRAIN_TIMEOUT_S = 10.0
"""Taking a full ring to a slow disk; ordinarily a drain lasts two retire periods."""

_CLOCK_TRIES = 5


class Capture:
    """Captures of the router's two interfaces, for a process that lives in the router's network namespace.

    Whatever event loop hosts it watches ``filenos`` and calls ``on_readable``; ``run`` is such a loop for a process
    that does nothing else.

    Args:
        left_interface: The one towards the client.
        right_interface: The one towards the server.
        application: Which program the files name as their writer.
    """

    def __init__(self, left_interface: str, right_interface: str, *, application: str = "blackhole-lab") -> None:
        self._interfaces = {"left": (left_interface, "client"), "right": (right_interface, "server")}
        self._application = application
        self._sides: dict[str, _Side] = {}
        self._clocks: list[ClockPair] = []
        self._failure: LabError | None = None

    @property
    def failure(self) -> LabError | None:
        """Why nothing is written any more, or None while all is well. ``stop`` raises it."""
        return self._failure

    @property
    def filenos(self) -> tuple[int, ...]:
        """Descriptors that become readable when packets wait to be written."""
        return tuple(side.fileno for side in self._sides.values())

    def start(self, folder: Path, filter_expression: str | None = None, ring_bytes: int = 0) -> None:
        """Begin; when this returns, packets are being caught.

        Args:
            folder: Gets left.pcapng and right.pcapng.
            filter_expression: pcap-filter(7), attached in the kernel; TCP, ICMP and ICMPv6 where None.
            ring_bytes: Buffer per side; 0 takes the default.

        Raises:
            UsageError: it runs already, the filter is not valid, or there is no such interface.
            Unsupported: an interface is not Ethernet.
            EnvironmentNotReady: no CAP_NET_RAW, no libpcap, no memory, or a folder that cannot be written.
        """
        if self._sides:
            raise UsageError("A capture that is not running was expected; this one has been started.")
        expression = DEFAULT_FILTER if filter_expression is None else filter_expression
        # scapy lists the interfaces once per process; in a process forked from a warm one they are another namespace's.
        conf.ifaces.reload()
        self._failure = None
        with contextlib.ExitStack() as undo:
            undo.callback(self._close)
            for name, (interface, peer) in self._interfaces.items():
                path = folder / f"{name}.pcapng"
                source = _source(interface, f"router, towards the {peer}", expression, self._application)
                self._sides[name] = _Side(path, source, ring_bytes or DEFAULT_RING_BYTES)
            undo.pop_all()
        self._clocks = [sample_clocks()]

    def on_readable(self) -> None:
        """Write what is ready; never blocks for packets.

        A disk that takes no more ends the capture: ``failure`` tells, and the files keep what they hold.
        """
        if self._failure is None:
            with self._failing():
                for side in self._sides.values():
                    side.write_ready()

    def stop(self) -> CaptureSummary:
        """Let no more packets in, write what is in the rings, close; the files are complete when this returns.

        Raises:
            UsageError: it is not running.
            EnvironmentNotReady: the disk took no more at some point; what was written is readable.
            InvalidRun: the kernel counted packets that never came out of the ring.
        """
        if not self._sides:
            raise UsageError("A running capture was expected; this one was not started, or has been stopped.")
        started, stopped = self._clocks[0], sample_clocks()
        self._clocks.append(stopped)
        try:
            if self._failure is None:
                with self._failing():
                    for side in self._sides.values():
                        side.finish(started, stopped)
            if self._failure is not None:
                raise self._failure
            sides = self._sides
            return CaptureSummary(
                left=sides["left"].path,
                right=sides["right"].path,
                packets={name: side.packets for name, side in sides.items()},
                dropped={name: side.dropped for name, side in sides.items()},
                started_at=started.monotonic,
                stopped_at=stopped.monotonic,
                clocks=tuple(self._clocks),
            )
        finally:
            self._close()

    def run(self, stop_fd: int) -> CaptureSummary:
        """Write packets until ``stop_fd`` is readable or hung up, or the disk takes no more; then ``stop``."""
        poll = select.poll()
        poll.register(stop_fd, select.POLLIN)
        for fileno in self.filenos:
            poll.register(fileno, select.POLLIN)
        while self._failure is None:
            ready = dict(poll.poll())
            self.on_readable()
            if stop_fd in ready:
                break
        return self.stop()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failure = EnvironmentNotReady(
                f"The capture could not be written: {error.strerror}. What was written until then is readable.",
                fix="free some space, or choose another output folder",
            )
        except InvalidRun as error:
            self._failure = error

    def _close(self) -> None:
        for side in self._sides.values():
            side.close()
        self._sides = {}


class _Side:
    """One interface and its file."""

    def __init__(self, path: Path, source: Source, ring_bytes: int) -> None:
        self.path = path
        with contextlib.ExitStack() as undo:
            self._socket = _open_socket(source)
            undo.callback(self._socket.close)
            self._ring = _open_ring(self._socket.ins, ring_bytes)
            undo.callback(self._ring.close)
            self._writer = _open_file(path, source)
            undo.callback(self._writer.close)
            self._socket.ins.bind((source.interface, _PROTOCOL_ALL))
            self._undo = undo.pop_all()

    @property
    def fileno(self) -> int:
        return int(self._socket.ins.fileno())

    @property
    def packets(self) -> int:
        return self._writer.packets

    @property
    def dropped(self) -> int:
        return self._ring.count().dropped

    def write_ready(self) -> None:
        for packets in self._ring.take():
            self._writer.write(packets)

    def finish(self, started: ClockPair, stopped: ClockPair) -> None:
        """Write what the ring still holds, then the counters."""
        self._ring.stop_intake()
        self._drain(time.monotonic() + _DRAIN_TIMEOUT_S)
        received, dropped = self._ring.count()
        self._writer.write_statistics(
            Statistics(
                started_ns=round(started.wall * 1e9),
                ended_ns=round(stopped.wall * 1e9),
                received=received,
                dropped=dropped,
            )
        )

    def _drain(self, deadline: float) -> None:
        """Until the packets written are the packets counted, and a whole retire period brought no other.

        The period is for a packet that another CPU was putting into the ring while the intake was stopped.
        """
        settled = False
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        while True:
            self.write_ready()
            received, dropped = self._ring.count()
            complete = self._ring.taken == received - dropped
            if complete and settled:
                return
            if time.monotonic() > deadline:
                raise InvalidRun(
                    f"{received - dropped} packets were expected in {self.path.name}, as the kernel counted;"
                    f" {self._ring.taken} came out of the ring in {_DRAIN_TIMEOUT_S:.0f} s."
                )
            quiet = not poll.poll(RETIRE_MS)
            settled = complete and quiet

    def close(self) -> None:
        self._undo.close()


def sample_clocks() -> ClockPair:
    """One instant on both clocks of this kernel: the tightest of a few tries, good to about a microsecond."""
    tries = []
    for _ in range(_CLOCK_TRIES):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        tries.append((after - before, wall, (before + after) / 2))
    _, wall, monotonic = min(tries)
    return ClockPair(wall=wall, monotonic=monotonic)


def _source(interface: str, description: str, filter_expression: str, application: str) -> Source:
    return Source(
        interface=interface,
        description=description,
        filter_expression=filter_expression,
        hardware=platform.machine(),
        system=f"{platform.system()} {platform.release()}",
        application=application,
    )


def _open_socket(source: Source) -> L2ListenSocket:
    """A socket with its filter that receives nothing yet."""
    try:
        socket.if_nametoindex(source.interface)
    except OSError:
        names = ", ".join(sorted(name for _, name in socket.if_nameindex()))
        raise UsageError(
            f"An interface of this namespace was expected ({names}); {source.interface} is none."
        ) from None
    try:
        opened = L2ListenSocket(
            iface=source.interface, type=_PROTOCOL_NONE, filter=source.filter_expression or None, promisc=False
        )
    except Scapy_Exception as error:
        if "libpcap" in str(error):
            raise EnvironmentNotReady(f"{error}.", fix="apt-get install libpcap0.8") from error
        raise UsageError(f"A capture filter as in pcap-filter(7) was expected. {error}.") from error
    except PermissionError as error:
        raise EnvironmentNotReady(
            "Capturing needs CAP_NET_RAW in this network namespace.",
            fix="run as root, or allow unprivileged user namespaces",
        ) from error
    hardware_type = opened.ins.getsockname()[3]
    if hardware_type != _ETHERNET:
        opened.close()
        raise Unsupported(f"{source.interface} was expected to be Ethernet; its hardware type is {hardware_type}.")
    return opened


def _open_ring(packet_socket: socket.socket, ring_bytes: int) -> PacketRing:
    try:
        return PacketRing(packet_socket, ring_bytes)
    except OSError as error:
        raise EnvironmentNotReady(
            f"The kernel gave no ring of {ring_bytes} octets for the capture: {error.strerror}.",
            fix="ask for a smaller ring",
        ) from error


def _open_file(path: Path, source: Source) -> PcapngWriter:
    try:
        return PcapngWriter(path, source)
    except OSError as error:
        raise EnvironmentNotReady(
            f"{path} cannot be written: {error.strerror}.",
            fix=f"make {os.fspath(path.parent)} a writable folder with space left, or choose another",
        ) from error
