"""A synthetic capture of many segments with known losses, as bytes: no stack, no randomness but a seed.

Flows send bulk data with timestamps, the receiver acknowledges every second segment. Now and then one segment is lost
behind the capture point: most are repaired after three duplicate acknowledgments with SACK blocks, some by a timeout.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
_RECORD = struct.Struct("<IIII")
_TCP = struct.Struct(">HHIIBBHHH")
_MSS = 1448
_SNAP = 128
_START_S = 1_700_000_000.0
_ACK, _PSH_ACK, _SYN, _SYN_ACK = 0x10, 0x18, 0x02, 0x12
_SACK_OK = b"\x02\x04\x05\xb4\x04\x02\x08\x0a"
_MASK = 0xFFFFFFFF


@dataclass
class Losses:
    """What the generator resent."""

    fast: int = 0
    """Copies after duplicate acknowledgments."""

    timeouts: int = 0
    """Copies after a retransmission timeout."""


@dataclass
class _Flow:
    number: int
    seq: list[int]
    """Next sequence number of client and server."""

    ip_id: list[int] = field(default_factory=lambda: [1, 1])


class _Writer:
    """Frames of one capture, in order of time."""

    def __init__(self) -> None:
        self.now = _START_S
        self.count = 0

    def frame(self, flow: _Flow, side: int, seq: int, ack: int, flags: int, length: int, options: bytes = b"") -> bytes:
        """One record with its pcap header; time moves by 5 microseconds."""
        self.now += 5e-6
        self.count += 1
        stamps = struct.pack(">II", int(self.now * 1000) & _MASK, int(self.now * 1000) - 1 & _MASK)
        tcp_options = (_SACK_OK if flags & _SYN else b"\x01\x01\x08\x0a") + stamps + options
        tcp_options += b"\x01" * (-len(tcp_options) % 4)
        ports = (40000 + flow.number, 5000) if side == 0 else (5000, 40000 + flow.number)
        ends = (b"\xc0\x00\x02\x01", b"\xc6\x33\x64\x01")
        flow.ip_id[side] = flow.ip_id[side] + 1 & 0xFFFF
        total = 40 + len(tcp_options) + length
        packet = (
            b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"
            + struct.pack(">BBHHHBBH", 0x45, 0, total, flow.ip_id[side], 0x4000, 64, 6, 0)
            + ends[side]
            + ends[1 - side]
            + _TCP.pack(*ports, seq & _MASK, ack & _MASK, (20 + len(tcp_options)) << 2, flags, 2000, 0, 0)
            + tcp_options
        )
        captured = min(_SNAP, len(packet) + length)
        seconds = int(self.now)
        header = _RECORD.pack(seconds, int((self.now - seconds) * 1e6), captured, len(packet) + length)
        return header + packet.ljust(captured, b"x")


def _sack(left: int, right: int) -> bytes:
    return b"\x01\x01\x05\x0a" + struct.pack(">II", left & _MASK, right & _MASK)


def frames(segments: int, *, flows: int, seed: int, losses: Losses) -> Iterator[bytes]:
    """Records of at least ``segments`` segments.

    Args:
        segments: How many at least; the last burst is finished.
        flows: Connections that take turns.
        seed: Decides which bursts lose a segment.
        losses: Counted up as copies are written.
    """
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    out = _Writer()
    # The first flow wraps its sequence numbers early on.
    all_flows = [_Flow(n, [_MASK - 100_000 if n == 0 else chance.getrandbits(32), 77]) for n in range(flows)]
    for flow in all_flows:
        yield out.frame(flow, 0, flow.seq[0], 0, _SYN, 0)
        yield out.frame(flow, 1, flow.seq[1], flow.seq[0] + 1, _SYN_ACK, 0)
        flow.seq = [flow.seq[0] + 1, flow.seq[1] + 1]
        yield out.frame(flow, 0, flow.seq[0], flow.seq[1], _ACK, 0)
    while out.count < segments:
        for flow in all_flows:
            draw = chance.random()
            yield from _burst(out, flow, "fast" if draw < 0.02 else "timeout" if draw < 0.021 else "", losses)


def _burst(out: _Writer, flow: _Flow, loss: str, losses: Losses) -> Iterator[bytes]:
    """Ten segments and their acknowledgments, with the loss repaired before the burst ends."""
    begin, peer = flow.seq
    end = begin + 10 * _MSS
    for n in range(10):
        yield out.frame(flow, 0, begin + n * _MSS, peer, _PSH_ACK if n == 9 else _ACK, _MSS)
        if n % 2 and (not loss or n < 4):
            yield out.frame(flow, 1, peer, begin + (n + 1) * _MSS, _ACK, 0)
    if loss == "fast":
        hole = begin + 4 * _MSS
        for n in range(5, 10):
            yield out.frame(flow, 1, peer, hole, _ACK, 0, _sack(hole + _MSS, begin + (n + 1) * _MSS))
        out.now += 0.0002
        yield out.frame(flow, 0, hole, peer, _ACK, _MSS)
        losses.fast += 1
    elif loss == "timeout":
        out.now += 0.25
        yield out.frame(flow, 0, begin + 4 * _MSS, peer, _ACK, _MSS)
        losses.timeouts += 1
    if loss:
        yield out.frame(flow, 1, peer, end, _ACK, 0)
    out.now += 0.0005
    flow.seq[0] = end


def write(path: Path, segments: int, *, flows: int = 8, seed: int = 1) -> Losses:
    """Write the capture as classic pcap and say what was resent in it."""
    losses = Losses()
    with path.open("wb") as file:
        file.write(_PCAP_HEADER)
        file.writelines(frames(segments, flows=flows, seed=seed, losses=losses))
    return losses
