"""The ring itself: what it hands out, when, and what it counts."""

import select
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.testbed.ring import BLOCK_BYTES, RETIRE_MS, Count, PacketRing
from tests.testbed.places import Places, ip, three_places

_ETH_P_ALL = 3
_TEST_PROTOCOL = b"\x88\xb5"
"""For local experiments (IEEE 802)."""


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with three_places() as places:
        places.router.call(_make_quiet_interface)
        yield places


def test_frames_come_out_whole_in_order_and_dated(places: Places) -> None:
    result = places.router.call(_exchange, [60, 61, 62, 63, 1000, 1514], ring_bytes=4 * BLOCK_BYTES)
    assert result.frames == [(size, True, size) for size in (60, 61, 62, 63, 1000, 1514)]
    assert result.times == sorted(result.times)
    assert result.count == Count(received=6, dropped=0)
    assert result.taken == 6


def test_a_block_that_is_not_full_comes_after_the_retire_time(places: Places) -> None:
    assert places.router.call(_ready_after_one_frame, timeout_ms=RETIRE_MS * 50)


def test_counting_does_not_forget_what_was_counted_before(places: Places) -> None:
    first, second = places.router.call(_count_twice)
    assert first == Count(received=3, dropped=0)
    assert second == Count(received=5, dropped=0)


def test_a_full_ring_drops_and_says_how_many(places: Places) -> None:
    frames = 4 * BLOCK_BYTES // 1514
    result = places.router.call(_exchange, [1514] * frames, ring_bytes=1)
    assert result.count.received == frames
    assert 0 < result.count.dropped < frames
    assert len(result.frames) == result.taken == frames - result.count.dropped
    assert result.times == sorted(result.times)


def test_no_more_than_the_limit_is_taken_in_one_turn(places: Places) -> None:
    turns = places.router.call(_blocks_per_turn, limit=2)
    assert turns[:2] == [2, 2]
    assert turns[-1] == 0


def test_a_stopped_ring_lets_nothing_in_and_gives_out_what_it_holds(places: Places) -> None:
    sizes, count = places.router.call(_send_after_the_stop)
    assert sizes == [100]
    assert count == Count(received=1, dropped=0)


# What runs in the place.

_INTERFACE = "ring0"


def _make_quiet_interface() -> None:
    """One that sends nothing of its own accord."""
    ip("link", "add", _INTERFACE, "type", "veth", "peer", "name", "ring1")
    for interface in (_INTERFACE, "ring1"):
        Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
        ip("link", "set", interface, "arp", "off", "up")


@dataclass(frozen=True, slots=True)
class _Result:
    frames: list[tuple[int, bool, int]]
    """Length on the wire, whether outgoing, octets of data."""

    times: list[int]
    count: Count
    taken: int


class _Wire:
    """A ring on an interface, and a socket that sends there."""

    def __init__(self, ring_bytes: int) -> None:
        self.receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.ring = PacketRing(self.receiver, ring_bytes)
        self.receiver.bind((_INTERFACE, _ETH_P_ALL))
        self.sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sender.bind((_INTERFACE, 0))

    def send(self, size: int) -> None:
        self.sender.send((b"\xff" * 6 + b"\x02" + b"\0" * 5 + _TEST_PROTOCOL).ljust(size, b"x"))

    def wait(self, timeout_ms: int = 5000) -> bool:
        poll = select.poll()
        poll.register(self.receiver, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def take_all(self) -> list[tuple[int, int, bool, bytes]]:
        taken: list[tuple[int, int, bool, bytes]] = []
        while True:
            count = self.ring.count()
            if self.ring.taken == count.received - count.dropped:
                return taken
            assert self.wait(), "the kernel counted packets that do not come"
            for packets in self.ring.take(100):
                taken += packets

    def close(self) -> None:
        self.ring.close()
        self.receiver.close()
        self.sender.close()


def _exchange(sizes: list[int], ring_bytes: int) -> _Result:
    wire = _Wire(ring_bytes)
    for size in sizes:
        wire.send(size)
    packets = wire.take_all()
    result = _Result(
        frames=[(length, outgoing, len(data)) for _, length, outgoing, data in packets],
        times=[time_ns for time_ns, *_ in packets],
        count=wire.ring.count(),
        taken=wire.ring.taken,
    )
    wire.close()
    return result


def _ready_after_one_frame(timeout_ms: int) -> bool:
    wire = _Wire(BLOCK_BYTES)
    wire.send(60)
    ready = wire.wait(timeout_ms)
    wire.close()
    return ready


def _count_twice() -> tuple[Count, Count]:
    wire = _Wire(BLOCK_BYTES)
    for _ in range(3):
        wire.send(60)
    first = wire.ring.count()
    for _ in range(2):
        wire.send(60)
    second = wire.ring.count()
    wire.close()
    return first, second


def _blocks_per_turn(limit: int) -> list[int]:
    wire = _Wire(8 * BLOCK_BYTES)
    for _ in range(5 * BLOCK_BYTES // 1514):
        wire.send(1514)
    turns = [len(list(wire.ring.take(limit)))]
    while turns[-1]:
        turns.append(len(list(wire.ring.take(limit))))
    wire.close()
    return turns


def _send_after_the_stop() -> tuple[list[int], Count]:
    wire = _Wire(BLOCK_BYTES)
    wire.send(100)
    wire.ring.stop_intake()
    wire.send(200)
    sizes = [length for _, length, *_ in wire.take_all()]
    count = wire.ring.count()
    wire.close()
    return sizes, count
