"""Interfaces on disk, above all both sides of the router: scapy opens the sockets, the bytes go to pcapng undissected.

The only module that touches scapy. A socket receives nothing until its filter and its ring are in place, and what the
kernel counted is held against what was written, so a finished capture is complete or says what it lacks.
"""

import contextlib
import os
import platform
import select
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import scapy.layers.l2  # without the link layers scapy warns of every socket that it cannot tell its type
from scapy.arch.common import compile_filter, free_filter
from scapy.arch.linux import L2ListenSocket
from scapy.data import ARPHRD_TO_DLT, SO_ATTACH_FILTER
from scapy.error import Scapy_Exception
from scapy.libs.structures import sock_fprog

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.core.timeline import ClockPair
from lab.pcap.rotation import RotatingWriter
from lab.pcap.writer import Source, Statistics
from lab.testbed.ports import CaptureFile, CaptureSummary
from lab.testbed.ring import RETIRE_MS, PacketRing

with contextlib.suppress(OSError):
    # Finds and loads libpcap, which takes longer than all of ``start``; where it is missing, ``start`` says so.
    import scapy.libs.winpcapy  # noqa: F401 - loading it is what it is imported for

DEFAULT_FILTER = "tcp or icmp or icmp6"
"""What experiments judge; neighbour discovery is ICMPv6 and stays in."""

DEFAULT_RING_BYTES = 4 * 1024 * 1024
"""Per side: well over a second of an ordinary experiment, and a hundred testbeds take less than a gigabyte."""

_PROTOCOL_NONE, _PROTOCOL_ALL = 0, 3
"""``ETH_P_ALL`` (linux/if_ether.h); bound to no protocol a packet socket receives nothing."""

_ETHERNET = 1
"""``ARPHRD_ETHER`` (linux/if_arp.h), what veth links are."""

_LINGER_S = 0.02
"""How long the intake goes on after the instant that the summary calls the stop: a packet that came in before it has
left by then, or never will."""

_DRAIN_TIMEOUT_S = 10.0
"""Without a single packet coming out of a ring that holds some; a slow disk may take longer over all of them."""

_BLOCKS_PER_TURN = 4
"""Taken from one side before the other gets its turn; without a bound a busy side starves the other one's ring."""

_CLOCK_TRIES = 5


class Capture:
    """Captures of the router's two interfaces, for a process that lives in the router's network namespace.

    Other interfaces by other names are captured with ``of``.

    Whatever event loop hosts it watches ``filenos`` and calls ``on_readable``; ``run`` is such a loop for a process
    that does nothing else.

    Args:
        left_interface: The one towards the client.
        right_interface: The one towards the server.
        application: Which program the files name as their writer.
    """

    def __init__(self, left_interface: str, right_interface: str, *, application: str = "blackhole-lab") -> None:
        self._interfaces: Mapping[str, tuple[str, str]] = {
            "left": (left_interface, "router, towards the client"),
            "right": (right_interface, "router, towards the server"),
        }
        self._application = application
        self._sides: dict[str, _Side] = {}
        self._clocks: list[ClockPair] = []
        self._failure: LabError | None = None

    @classmethod
    def of(cls, interfaces: Mapping[str, tuple[str, str]]) -> Self:
        """A capture of any interfaces of this namespace: per side, which is the file's name too, one and what it is."""
        capture = cls("", "")
        capture._interfaces = dict(interfaces)
        return capture

    @property
    def failure(self) -> LabError | None:
        """Why nothing is written any more, or None while all is well. ``stop`` raises it."""
        return self._failure

    @property
    def filenos(self) -> tuple[int, ...]:
        """Descriptors that become readable when packets wait to be written."""
        return tuple(side.fileno for side in self._sides.values())

    def start(
        self, folder: Path, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """Begin; when this returns, packets are being caught.

        Args:
            folder: Gets left.pcapng and right.pcapng, or a file by the name of each side.
            filter_expression: pcap-filter(7), attached in the kernel; TCP, ICMP and ICMPv6 where None.
            ring_bytes: Buffer per side; 0 takes the default.
            limit_bytes: On disk per side; 0 sets no bound.

        Raises:
            UsageError: it runs already, the filter is not valid, or there is no such interface.
            Unsupported: an interface is not Ethernet.
            EnvironmentNotReady: no CAP_NET_RAW, no libpcap, no memory, or a folder that cannot be written.
        """
        if self._sides:
            raise UsageError("A capture that is not running was expected; this one has been started.")
        expression = DEFAULT_FILTER if filter_expression is None else filter_expression
        self._failure = None
        with contextlib.ExitStack() as undo:
            undo.callback(self._close)
            for name, (interface, description) in self._interfaces.items():
                path = folder / f"{name}.pcapng"
                source = _source(interface, description, expression, self._application)
                self._sides[name] = _Side(path, source, ring_bytes or DEFAULT_RING_BYTES, limit_bytes)
            undo.pop_all()
        self._clocks = [sample_clocks()]

    def on_readable(self) -> None:
        """Write what is ready; never blocks for packets.

        A disk that takes no more ends the capture: ``failure`` tells, and the files keep what they hold.
        """
        if self._failure is None:
            with self._failing():
                self._write_ready()

    def flush(self) -> CaptureSummary:
        """Write everything that came in until now, and go on.

        Returns:
            As ``stop``, with this moment as ``stopped_at``.

        Raises:
            UsageError: it is not running.
            EnvironmentNotReady: the disk took no more at some point; what was written is readable.
            InvalidRun: the kernel counted packets that never came out of the ring.
        """
        self._require_running()
        now = sample_clocks()
        if self._failure is None:
            with self._failing():
                self._catch_up()
        if self._failure is not None:
            raise self._failure
        return self._summary(now)

    def stop(self) -> CaptureSummary:
        """Let no more packets in, write what is in the rings, close; the files are complete when this returns.

        Returns:
            Paths and counts. What came in on one side from ``started_at`` to ``stopped_at`` is there, and so is its way
            out on the other side, if it had one; the files go on a little longer than that.

        Raises:
            UsageError: it is not running.
            EnvironmentNotReady: the disk took no more at some point; what was written is readable.
            InvalidRun: the kernel counted packets that never came out of the ring.
        """
        self._require_running()
        started, stopped = self._clocks[0], sample_clocks()
        try:
            if self._failure is None:
                with self._failing():
                    self._drain()
                    for side in self._sides.values():
                        side.write_statistics(started, stopped)
            if self._failure is not None:
                raise self._failure
            return self._summary(stopped)
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

    def _require_running(self) -> None:
        if not self._sides:
            raise UsageError("A running capture was expected; this one was not started, or has been stopped.")

    def _summary(self, until: ClockPair) -> CaptureSummary:
        sides, started = self._sides, self._clocks[0]
        return CaptureSummary(
            files={name: side.path for name, side in sides.items()},
            packets={name: side.packets for name, side in sides.items()},
            dropped={name: side.dropped for name, side in sides.items()},
            started_at=started.monotonic,
            stopped_at=until.monotonic,
            clocks=(started, until),
            pieces={name: side.files(started) for name, side in sides.items()},
        )

    def _catch_up(self) -> None:
        """Write until what the kernel has counted by now is on disk; what comes in meanwhile may be, too."""
        poll = select.poll()
        for fileno in self.filenos:
            poll.register(fileno, select.POLLIN)
        goals = {side: side.caught for side in self._sides.values()}
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        while any(side.taken < goal for side, goal in goals.items()):
            if time.monotonic() > deadline:
                raise InvalidRun(
                    f"What the kernel has caught was expected to come out of the rings in {_DRAIN_TIMEOUT_S:.0f} s."
                )
            poll.poll(RETIRE_MS)
            self._write_ready()

    def _write_ready(self) -> None:
        for side in self._sides.values():
            side.write_ready()

    def _drain(self) -> None:
        """Stop the intake and write what the rings hold, until what was written is what the kernel counted.

        One more retire period has to pass without a packet: another CPU may have been putting one into a ring while the
        intake was stopped.
        """
        poll = select.poll()
        for fileno in self.filenos:
            poll.register(fileno, select.POLLIN)
        linger = time.monotonic() + _LINGER_S
        while (rest := linger - time.monotonic()) > 0:
            poll.poll(rest * 1000)
            self._write_ready()
        for side in self._sides.values():
            side.stop_intake()
        deadline, last = time.monotonic() + _DRAIN_TIMEOUT_S, None
        settled = False
        while True:
            self._write_ready()
            missing = {side.path.name: side.missing for side in self._sides.values() if side.missing}
            if settled and not missing:
                return
            if missing != last:
                deadline, last = time.monotonic() + _DRAIN_TIMEOUT_S, missing
            elif time.monotonic() > deadline:
                raise InvalidRun(
                    "Every packet that the kernel put into the rings was expected to come out of them in"
                    f" {_DRAIN_TIMEOUT_S:.0f} s; still missing: {missing}."
                )
            settled = not poll.poll(RETIRE_MS) and not missing

    def _close(self) -> None:
        for side in self._sides.values():
            side.close()
        self._sides = {}


def open_capture(left: str, right: str, sides: Mapping[str, tuple[str, str]]) -> Capture:
    """Of these sides where there are any, else of the router's two interfaces."""
    return Capture.of(sides) if sides else Capture(left, right)


class _Side:
    """One interface and its file."""

    def __init__(self, path: Path, source: Source, ring_bytes: int, limit_bytes: int) -> None:
        self.path = path
        with contextlib.ExitStack() as undo:
            self._socket = _open_socket(source)
            undo.callback(self._socket.close)
            self._ring = _open_ring(self._socket.ins, ring_bytes)
            undo.callback(self._ring.close)
            self._writer = _open_file(path, source, limit_bytes)
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
        for packets in self._ring.take(_BLOCKS_PER_TURN):
            self._writer.write(packets)
        # A link that goes down leaves an error on the socket, which then polls as ready until somebody reads it; the
        # capture goes on when the link comes back (packet_notifier).
        self._socket.ins.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def stop_intake(self) -> None:
        self._ring.stop_intake()

    @property
    def caught(self) -> int:
        """Packets that the kernel has put into the ring so far."""
        received, dropped = self._ring.count()
        return received - dropped

    @property
    def taken(self) -> int:
        """Those that were written."""
        return self._ring.taken

    def files(self, started: ClockPair) -> tuple[CaptureFile, ...]:
        return tuple(
            CaptureFile(
                part.path,
                part.octets,
                started.monotonic if part.since_ns is None else part.since_ns / 1e9 - started.offset,
            )
            for part in self._writer.parts
        )

    @property
    def missing(self) -> int:
        """Packets in the ring that have not been written."""
        return self.caught - self.taken

    def write_statistics(self, started: ClockPair, stopped: ClockPair) -> None:
        received, dropped = self._ring.count()
        self._writer.write_statistics(
            Statistics(
                started_ns=round(started.wall * 1e9),
                ended_ns=round(stopped.wall * 1e9),
                received=received,
                dropped=dropped,
            )
        )

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
        opened = L2ListenSocket(iface=source.interface, type=_PROTOCOL_NONE, nofilter=1, promisc=False)
    except PermissionError as error:
        raise EnvironmentNotReady(
            "Capturing needs CAP_NET_RAW in this network namespace.",
            fix="run as root, or allow unprivileged user namespaces",
        ) from error
    with contextlib.ExitStack() as undo:
        undo.callback(opened.close)
        hardware_type = opened.ins.getsockname()[3]
        if hardware_type != _ETHERNET:
            raise Unsupported(f"{source.interface} was expected to be Ethernet; its hardware type is {hardware_type}.")
        if source.filter_expression:
            _attach_filter(opened.ins, source.filter_expression)
        undo.pop_all()
    return opened


def _attach_filter(packet_socket: socket.socket, expression: str) -> None:
    """Compile and attach a filter, by link type.

    Given an interface instead, scapy looks it up in a list that it made once per process, maybe in another namespace.
    """
    try:
        program = compile_filter(expression, linktype=ARPHRD_TO_DLT[_ETHERNET])
    except ImportError as error:
        raise EnvironmentNotReady(f"libpcap is missing: {error}", fix="apt-get install libpcap0.8") from error
    except Scapy_Exception as error:
        raise UsageError(f"A capture filter as in pcap-filter(7) was expected. {error}.") from error
    packet_socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, sock_fprog(program.bf_len, program.bf_insns))
    free_filter(program)


def _open_ring(packet_socket: socket.socket, ring_bytes: int) -> PacketRing:
    try:
        return PacketRing(packet_socket, ring_bytes)
    except OSError as error:
        raise EnvironmentNotReady(
            f"The kernel gave no ring of {ring_bytes} octets for the capture: {error.strerror}.",
            fix="ask for a smaller ring",
        ) from error


def _open_file(path: Path, source: Source, limit_bytes: int) -> RotatingWriter:
    try:
        return RotatingWriter(path, source, limit_bytes)
    except OSError as error:
        raise EnvironmentNotReady(
            f"{path} cannot be written: {error.strerror}.",
            fix=f"make {os.fspath(path.parent)} a writable folder with space left, or choose another",
        ) from error
