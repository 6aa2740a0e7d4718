"""The instrument, calibrated: what was sent is what was seen, on both sides, or is accounted for."""

import contextlib
import gc
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import pytest

import lab.testbed.firewall_iptables  # noqa: F401 - loaded before the places are forked: nobody may not be able to read it
from lab.core.errors import EnvironmentNotReady, InvalidRun, UsageError
from lab.core.fault import Fault, Matched
from lab.core.flow import FourTuple
from lab.testbed.capture import Capture, sample_clocks
from lab.testbed.firewall import Firewall, open_firewall
from lab.testbed.ports import CaptureSummary
from lab.testbed.ring import Count, PacketRing
from tests.pcap.pcapng import Frame, frames, statistics
from tests.testbed.places import CLIENT, LEFT, RIGHT, SERVER, Places, _sockets, ip, receive, send, three_places

FAMILIES = [pytest.param(socket.AF_INET, id="ipv4"), pytest.param(socket.AF_INET6, id="ipv6")]
DISCARD, CLOSED = 9, 10
"""UDP ports: one that swallows, one where nobody listens."""

BULK_BYTES = 24 * 1024 * 1024


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with three_places() as places:
        yield places


@pytest.fixture(scope="module")
def unprivileged() -> Iterator[Places]:
    with three_places(as_nobody=True) as places:
        yield places


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where everybody may write; pytest's own folders are closed to nobody."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("who", ["places", "unprivileged"])
def test_of_23_segments_sent_23_are_seen_on_both_sides(
    request: pytest.FixtureRequest, who: str, folder: Path, family: socket.AddressFamily
) -> None:
    places: Places = request.getfixturevalue(who)
    places.router.call(_start, folder)
    flow = places.connect(family)
    for number in range(23):
        places.client.call(send, flow, bytes([number]) * (number + 1))
        assert len(places.server.call(receive, flow, number + 1)) == number + 1
    summary = places.router.call(_stop)
    for path in (summary.left, summary.right):
        payloads = [payload for payload, forward in _payloads(path, flow) if forward]
        assert payloads == [bytes([number]) * (number + 1) for number in range(23)]
    assert summary.dropped == {"left": 0, "right": 0}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_rule_counted_is_what_was_seen_left_and_is_missing_right(
    places: Places, folder: Path, family: socket.AddressFamily
) -> None:
    places.router.call(_start, folder)
    places.router.call(_open_firewall)
    flow = places.connect(family)
    places.client.call(send, flow, b"before")
    assert places.server.call(receive, flow, 6)
    places.router.call(_cut, Fault(flow))
    for _ in range(5):
        places.client.call(send, flow, b"into the hole")
        places.server.call(send, flow, b"into the hole")
    # Five segments each way, a tail-loss probe and a first timeout.
    _wait_for(lambda: min(places.router.call(_matched, Fault(flow))) >= 7)
    matched = places.router.call(_heal, Fault(flow))
    assert places.server.call(receive, flow, 65)
    assert places.client.call(receive, flow, 65)
    summary = places.router.call(_stop)
    left, right = _ways(summary.left, flow), _ways(summary.right, flow)
    assert matched == Matched(forward=left[0] - right[0], return_=right[1] - left[1])
    assert min(matched.forward, matched.return_) >= 7


def test_the_last_segment_before_the_stop_is_caught(places: Places, folder: Path) -> None:
    """It sits in a block that is neither full nor old."""
    for number in range(5):
        places.router.call(_start, folder)
        flow = places.connect()
        places.client.call(send, flow, b"last")
        assert places.server.call(receive, flow, 4)
        summary = places.router.call(_stop)
        assert [payload for payload, _ in _payloads(summary.right, flow)] == [b"last"], f"try {number}"


def test_nothing_gets_past_the_filter_while_the_capture_starts(places: Places, folder: Path) -> None:
    """Sockets that receive before they have a filter let a few packets in."""
    places.server.call(_swallow_datagrams)
    places.client.call(_flood, True)
    try:
        for _ in range(5):
            places.router.call(_start, folder)
            flow = places.connect()
            summary = places.router.call(_stop)
            for path in (summary.left, summary.right):
                assert {_protocol(frame) for frame in frames(path)} <= {socket.IPPROTO_TCP, socket.IPPROTO_ICMPV6}
            assert _ways(summary.left, flow)[0] >= 2, "the handshake is in it, whole"
    finally:
        places.client.call(_flood, False)


def test_the_filter_is_the_callers(places: Places, folder: Path) -> None:
    wanted, other = places.connect(), places.connect()
    places.router.call(_start, folder, f"tcp port {wanted.client.port}")
    for flow in (wanted, other):
        places.client.call(send, flow, b"data")
        assert places.server.call(receive, flow, 4)
    summary = places.router.call(_stop)
    assert [payload for payload, _ in _payloads(summary.left, wanted)] == [b"data"]
    assert sum(_ways(summary.left, other)) == 0


@pytest.mark.parametrize(
    ("family", "protocol"), [(socket.AF_INET, socket.IPPROTO_ICMP), (socket.AF_INET6, socket.IPPROTO_ICMPV6)]
)
def test_icmp_is_caught_by_default_and_udp_is_not(
    places: Places, folder: Path, family: socket.AddressFamily, protocol: int
) -> None:
    places.router.call(_start, folder)
    # Nobody listens: the server answers the datagram with an ICMP error, which carries its first octets.
    with pytest.raises(ConnectionRefusedError):
        places.client.call(_send_to_nobody, family)
    summary = places.router.call(_stop)
    for path in (summary.left, summary.right):
        protocols = [_protocol(frame) for frame in frames(path)]
        assert protocol in protocols
        assert socket.IPPROTO_UDP not in protocols


def test_a_bulk_flow_is_caught_whole_or_the_rest_is_counted(places: Places, folder: Path) -> None:
    places.router.call(_start, folder, "tcp")
    flow = places.connect()
    sink = threading.Thread(target=places.server.call, args=(_sink, flow, BULK_BYTES))
    sink.start()
    places.client.call(_pour, flow, BULK_BYTES)
    sink.join(timeout=60)
    assert not sink.is_alive()
    summary = places.router.call(_stop)
    seen = {side: summary.packets[side] + summary.dropped[side] for side in ("left", "right")}
    assert seen["left"] == seen["right"] > BULK_BYTES // 65536
    for side, path in (("left", summary.left), ("right", summary.right)):
        assert len(frames(path)) == summary.packets[side]
        received, dropped, also_dropped, delivered = statistics(path).values()
        assert dropped == also_dropped == summary.dropped[side]
        assert delivered == summary.packets[side] == received - dropped
        assert all(frame.length == len(frame.data) for frame in frames(path)), "super-segments are caught whole"


def test_a_ring_that_overflows_says_so(places: Places, folder: Path) -> None:
    places.router.call(_start, folder, "udp", ring_bytes=1)
    pid = places.router.call(_capture_pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        sent = places.client.call(_burst, 2000)
    finally:
        os.kill(pid, signal.SIGCONT)
    summary = places.router.call(_stop)
    assert summary.dropped["left"] > 0
    assert summary.packets["left"] + summary.dropped["left"] == sent


def test_packets_are_dated_by_the_clock_that_the_pairs_relate(places: Places, folder: Path) -> None:
    before = time.monotonic()
    places.router.call(_start, folder)
    started = time.monotonic()
    flow = places.connect()
    connected = time.monotonic()
    summary = places.router.call(_stop)
    first, last = summary.clocks
    assert abs(first.offset - last.offset) < 0.001
    assert before < summary.started_at == first.monotonic < started
    assert connected < summary.stopped_at == last.monotonic < time.monotonic()
    for path in (summary.left, summary.right):
        times = [frame.time_ns / 1e9 - first.offset for frame in frames(path) if _belongs(frame, flow)]
        assert started - 0.001 < min(times) <= max(times) < connected + 0.001


def test_both_sides_say_which_way_a_packet_went(places: Places, folder: Path) -> None:
    places.router.call(_start, folder)
    flow = places.connect()
    summary = places.router.call(_stop)
    for path, forward_leaves in ((summary.left, False), (summary.right, True)):
        for frame in frames(path):
            if _belongs(frame, flow):
                forward = _ports(frame)[0] == flow.client.port
                assert frame.outgoing is (forward is forward_leaves)


def test_a_link_that_goes_down_and_comes_back_neither_ends_the_capture_nor_keeps_it_busy(folder: Path) -> None:
    with three_places() as places:
        places.router.call(_start, folder)
        places.router.call(ip, "link", "set", RIGHT, "down")
        pid = places.router.call(_capture_pid)
        used = _cpu_time(pid)
        time.sleep(0.3)
        assert _cpu_time(pid) - used < 0.1
        places.router.call(ip, "link", "set", RIGHT, "up")
        flow = places.connect()
        summary = places.router.call(_stop)
        assert _ways(summary.right, flow)[0] >= 2


def test_a_killed_capture_leaves_readable_files(places: Places, folder: Path) -> None:
    places.router.call(_start, folder)
    flow = places.connect()
    places.client.call(send, flow, b"data")
    assert places.server.call(receive, flow, 4)
    paths = [folder / "left.pcapng", folder / "right.pcapng"]
    _wait_for(lambda: all(_payloads(path, flow) for path in paths))
    places.router.call(_kill_capture)
    assert [_payloads(path, flow) for path in paths] == [[(b"data", True)]] * 2
    if shutil.which("tshark"):
        assert len(_tshark(folder / "left.pcapng", "tcp.len == 4")) == 1


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("family", FAMILIES)
def test_tshark_reads_what_was_sent(places: Places, folder: Path, family: socket.AddressFamily) -> None:
    places.router.call(_start, folder)
    flow = places.connect(family)
    for number in range(5):
        places.client.call(send, flow, b"x" * (10 + number))
        assert places.server.call(receive, flow, 10 + number)
    summary = places.router.call(_stop)
    for path in (summary.left, summary.right):
        lengths = _tshark(path, "tcp.len > 0", "-T", "fields", "-e", "tcp.len")
        assert lengths == ["10", "11", "12", "13", "14"]


def test_a_full_disk_ends_the_capture_with_a_clear_error_and_readable_files(unprivileged: Places) -> None:
    unprivileged.router.call(_mount_small_disk)
    unprivileged.router.call(_start, Path("/mnt"))
    flow = unprivileged.connect()
    paths = [Path("/mnt/left.pcapng"), Path("/mnt/right.pcapng")]
    _wait_for(lambda: all(unprivileged.router.call(_handshake_is_in, path) for path in paths))
    sink = threading.Thread(target=unprivileged.server.call, args=(_sink, flow, 1024 * 1024))
    sink.start()
    unprivileged.client.call(_pour, flow, 1024 * 1024)
    sink.join(timeout=60)
    with pytest.raises(EnvironmentNotReady, match=r"No space left on device.*readable"):
        unprivileged.router.call(_stop)
    assert all(unprivileged.router.call(_handshake_is_in, path) for path in paths)


def test_a_folder_that_cannot_be_written_is_an_error_before_anything_starts(places: Places, folder: Path) -> None:
    descriptors = places.router.call(_descriptors)
    with pytest.raises(EnvironmentNotReady, match=r"left\.pcapng cannot be written: No such file or directory"):
        places.router.call(_start_here, folder / "missing")
    assert places.router.call(_descriptors) == descriptors, "nothing stays open"


@pytest.mark.skipif(os.geteuid() != 0, reason="the folder's owner may write in it by the rights of his own namespace")
def test_a_read_only_folder_is_an_error_before_anything_starts(unprivileged: Places, folder: Path) -> None:
    folder.chmod(0o555)
    with pytest.raises(EnvironmentNotReady, match="Permission denied"):
        unprivileged.router.call(_start_here, folder)


def test_a_filter_that_does_not_compile_is_the_callers_mistake(places: Places, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"pcap-filter\(7\).*tcp prot 3"):
        places.router.call(_start_here, folder, "tcp prot 3")


def test_an_interface_that_does_not_exist_is_the_callers_mistake(places: Places, folder: Path) -> None:
    with pytest.raises(UsageError, match=f"{LEFT}.*nowhere0 is none"):
        places.router.call(_start_here, folder, None, "nowhere0")


def test_stop_needs_a_start_and_a_start_needs_no_other(places: Places, folder: Path) -> None:
    with pytest.raises(UsageError, match="not started"):
        Capture(LEFT, RIGHT).stop()
    with pytest.raises(UsageError, match="has been started"):
        places.router.call(_start_twice, folder)


def test_packets_that_the_kernel_counted_and_never_handed_over_make_the_run_invalid(
    places: Places, folder: Path
) -> None:
    with pytest.raises(InvalidRun, match=r"still missing: .*left\.pcapng.: 1"):
        places.router.call(_stop_with_a_count_that_is_wrong, folder)


def test_sampled_clocks_are_those_of_the_standard_library() -> None:
    before = time.time(), time.monotonic()
    pair = sample_clocks()
    assert before[0] <= pair.wall <= time.time()
    assert before[1] <= pair.monotonic <= time.monotonic()


# Reading what was caught.


def _protocol(frame: Frame) -> int:
    return frame.data[23] if frame.data[12:14] == b"\x08\x00" else frame.data[20]


def _ports(frame: Frame) -> tuple[int, int]:
    start = 34 if frame.data[12:14] == b"\x08\x00" else 54
    source, destination = struct.unpack_from(">HH", frame.data, start)
    return source, destination


def _belongs(frame: Frame, flow: FourTuple) -> bool:
    return _protocol(frame) == socket.IPPROTO_TCP and set(_ports(frame)) == {flow.client.port, flow.server.port}


def _ways(path: Path, flow: FourTuple) -> tuple[int, int]:
    """Segments of the flow, forward and return."""
    sources = [_ports(frame)[0] for frame in frames(path) if _belongs(frame, flow)]
    return sources.count(flow.client.port), sources.count(flow.server.port)


def _payloads(path: Path, flow: FourTuple) -> list[tuple[bytes, bool]]:
    """Payload, and whether it went forward, of every segment of the flow that has any."""
    found = []
    for frame in frames(path):
        if _belongs(frame, flow):
            ipv4 = frame.data[12:14] == b"\x08\x00"
            tcp = 34 if ipv4 else 54
            (length,) = struct.unpack_from(">H", frame.data, 16 if ipv4 else 18)
            end = 14 + length + (0 if ipv4 else 40)
            payload = frame.data[tcp + (frame.data[tcp + 12] >> 4) * 4 : end]
            if payload:
                found.append((payload, _ports(frame)[0] == flow.client.port))
    return found


def _tshark(path: Path, display_filter: str, *arguments: str) -> list[str]:
    command = ["tshark", "-r", str(path), "-Y", display_filter, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def _cpu_time(pid: int) -> float:
    """Seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not come true within {timeout_s} s"
        time.sleep(0.01)


# What runs in the places.

_captures: list[tuple[int, Connection]] = []
_firewalls: list[Firewall] = []
_floods: list[threading.Event] = []
_swallowing: list[socket.socket] = []


def _start(folder: Path, filter_expression: str | None = None, ring_bytes: int = 0) -> None:
    """A capture in a process of its own, as a testbed has it."""
    near, far = Pipe()
    pid = os.fork()
    if pid == 0:
        near.close()
        _capture_process(far, folder, filter_expression, ring_bytes)
    far.close()
    _captures.append((pid, near))
    reply = near.recv()
    if isinstance(reply, Exception):
        raise reply


def _capture_process(pipe: Connection, folder: Path, filter_expression: str | None, ring_bytes: int) -> None:
    capture = Capture(LEFT, RIGHT)
    try:
        capture.start(folder, filter_expression, ring_bytes)
        pipe.send(None)
        pipe.send(capture.run(pipe.fileno()))
    except Exception as error:  # noqa: BLE001 - it is raised where the capture was asked for
        pipe.send(error)
    finally:
        os._exit(0)


def _stop() -> CaptureSummary:
    pid, pipe = _captures.pop()
    with contextlib.suppress(BrokenPipeError):
        pipe.send("stop")
    reply = pipe.recv()
    pipe.close()
    os.waitpid(pid, 0)
    if isinstance(reply, Exception):
        raise reply
    assert isinstance(reply, CaptureSummary)
    return reply


def _capture_pid() -> int:
    return _captures[-1][0]


def _kill_capture() -> None:
    pid, pipe = _captures.pop()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pipe.close()


def _start_here(folder: Path, filter_expression: str | None = None, right: str = RIGHT) -> None:
    Capture(LEFT, right).start(folder, filter_expression)


def _start_twice(folder: Path) -> None:
    capture = Capture(LEFT, RIGHT)
    capture.start(folder)
    try:
        capture.start(folder)
    finally:
        capture.stop()


def _stop_with_a_count_that_is_wrong(folder: Path) -> None:
    import lab.testbed.capture

    count, timeout = PacketRing.count, lab.testbed.capture._DRAIN_TIMEOUT_S
    capture = Capture(LEFT, RIGHT)
    capture.start(folder)
    try:
        PacketRing.count = lambda self: Count(count(self).received + 1, 0)  # type: ignore[method-assign]
        lab.testbed.capture._DRAIN_TIMEOUT_S = 0.2
        capture.stop()
    finally:
        PacketRing.count, lab.testbed.capture._DRAIN_TIMEOUT_S = count, timeout  # type: ignore[method-assign]


def _descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def _mount_small_disk() -> None:
    from tests.testbed.places import _unshare

    _unshare(0x00020000)  # CLONE_NEWNS
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", "/mnt"], check=True)


def _handshake_is_in(path: Path) -> bool:
    return len([frame for frame in frames(path) if _protocol(frame) == socket.IPPROTO_TCP]) >= 3


def _open_firewall() -> None:
    _firewalls[:] = [open_firewall("iptables")]


def _cut(fault: Fault) -> None:
    _firewalls[0].cut(fault)


def _matched(fault: Fault) -> tuple[int, int]:
    matched = _firewalls[0].matched(fault)
    return matched.forward, matched.return_


def _heal(fault: Fault) -> Matched:
    _firewalls[0].heal(fault)
    return _firewalls[0].matched(fault)


def _pour(flow: FourTuple, number: int) -> None:
    _sockets[flow].settimeout(60)
    _sockets[flow].sendall(bytes(number))


def _sink(flow: FourTuple, number: int) -> None:
    _sockets[flow].settimeout(60)
    while number:
        number -= len(_sockets[flow].recv(1024 * 1024))


def _swallow_datagrams() -> None:
    """Bind the port that is flooded: the flood would use up what the kernel allows itself in ICMP errors."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((SERVER[socket.AF_INET], DISCARD))
    _swallowing.append(sock)


def _datagrams(stop: threading.Event) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while not stop.wait(0.0005):
            for _ in range(10):
                sock.sendto(b"unwanted", (SERVER[socket.AF_INET], DISCARD))


def _flood(on: bool) -> None:
    if on:
        _floods.append(threading.Event())
        threading.Thread(target=_datagrams, args=_floods, daemon=True).start()
    else:
        _floods.pop().set()


def _burst(number: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _ in range(number):
            sock.sendto(bytes(1000), (SERVER[socket.AF_INET], DISCARD))
    return number


def _send_to_nobody(family: socket.AddressFamily) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((CLIENT[family], 0))
        sock.connect((SERVER[family], CLOSED))
        sock.settimeout(10)
        sock.send(b"anybody there?")
        sock.recv(1)
