"""Random octets, damaged captures, and segments that no stack would send."""

import gzip
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.core.conversation import Conversation
from lab.core.explanation import explanation
from lab.core.flow import Endpoint
from lab.core.retransmission import FlowClassifier, classify
from lab.core.segment import Segment
from tests.fuzz.target import explain_bytes
from tests.pcap import build

A, B = Endpoint("192.0.2.1", 40000), Endpoint("198.51.100.1", 5000)
TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)
STREAM = [build.tcp(seq=n * 3, flags=2 if not n else 0x18, options=TIMESTAMPS, payload=b"abc") for n in range(6)]
FRAMES = [(1 + n / 5, build.ethernet(build.ipv4(part))) for n, part in enumerate([*STREAM, *STREAM])]
FRAMES_V6 = [(1 + n / 5, build.ethernet(build.ipv6(part), 0x86DD)) for n, part in enumerate([*STREAM, *STREAM])]

SEEDS = [
    build.pcap(FRAMES),
    build.pcap(FRAMES_V6, order=">", magic=build.NANO),
    build.pcap([(at, frame[14:]) for at, frame in FRAMES], link_type=build.RAW),
    build.pcap([(at, b"\x08\x00" + bytes(18) + frame[14:]) for at, frame in FRAMES], link_type=build.LINUX_SLL2),
    build.section() + build.interface() + b"".join(build.enhanced(frame, int(at * 1e6)) for at, frame in FRAMES),
    build.section(">") + build.interface(order=">") + b"".join(build.old(f, int(at * 1e6), ">") for at, f in FRAMES_V6),
]

bounded = settings(deadline=5000, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A deadline per example is the check against hangs: the files are a kilobyte."""


@bounded
@given(st.binary(max_size=2000))
def test_random_octets(tmp_path: Path, data: bytes) -> None:
    assert not explain_bytes(data, tmp_path / "a")


@bounded
@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=4)), max_size=12)
)
def test_damaged_captures(tmp_path: Path, seed: bytes, wounds: list[tuple[int, bytes]]) -> None:
    data = bytearray(seed)
    for at, octets in wounds:
        at %= len(data)
        data[at : at + len(octets)] = octets
    explain_bytes(bytes(data), tmp_path / "a")


@bounded
@given(st.sampled_from(SEEDS), st.integers(0, 5000), st.booleans())
def test_captures_cut_off_anywhere(tmp_path: Path, seed: bytes, at: int, compressed: bool) -> None:
    data = gzip.compress(seed, mtime=0) if compressed else seed
    explain_bytes(data[: at % len(data)], tmp_path / "a")


@bounded
@given(st.sampled_from([1, 0, 101, 113, 276, 228, 229]), st.lists(st.binary(max_size=120), max_size=8))
def test_random_frames_of_every_link_type(tmp_path: Path, link_type: int, frames: list[bytes]) -> None:
    explain_bytes(build.pcap([(n, frame) for n, frame in enumerate(frames)], link_type=link_type), tmp_path / "a")


near = st.one_of(st.integers(0, 40), st.integers(2**32 - 40, 2**32 - 1), st.sampled_from([2**31, 2**20 + 1, 2**30]))
a_segment = st.builds(
    lambda gap, forward, *rest: (gap, forward, rest),
    st.sampled_from([0.0, 1e-6, 0.001, 0.2, 0.25, 1.0, 9.0, -0.5]),
    st.booleans(),
    near,
    near,
    st.sampled_from([0x10, 0x18, 0x02, 0x12, 0x11, 0x14, 0x04, 0x01, 0x00, 0x3F]),
    st.sampled_from([0, 1, 500]),
    st.sampled_from([0, 1, 2, 10, 65160]),
    st.lists(st.tuples(near, near), max_size=3).map(tuple),
    st.one_of(st.none(), st.tuples(near, near)),
    st.one_of(st.none(), st.integers(0, 3)),
)


@settings(deadline=5000, max_examples=120)
@given(st.lists(a_segment, min_size=1, max_size=40))
def test_segments_that_no_stack_would_send(parts: list[tuple[float, bool, tuple[object, ...]]]) -> None:
    segments = in_order(parts)

    assert explained(segments)["diagnosis"]
    assert [c.segment for c in classify(segments)] == segments


a_plain_segment = st.tuples(
    st.sampled_from([0.0, 0.001, 0.2, 0.5, 1.0]),
    st.booleans(),
    st.tuples(
        st.integers(0, 6).map(lambda n: n * 5),
        st.integers(0, 6).map(lambda n: n * 5),
        st.sampled_from([0x10, 0x10, 0x18, 0x11]),
        st.sampled_from([0, 500]),
        st.sampled_from([0, 1, 5, 5, 10]),
    ),
)


@settings(deadline=5000, max_examples=120)
@given(st.lists(st.one_of(a_plain_segment, a_segment), min_size=1, max_size=40))
def test_the_short_cut_for_plain_segments_changes_nothing(parts: list[tuple[float, bool, tuple[object, ...]]]) -> None:
    segments = in_order(parts)
    short = explained(segments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlowClassifier, "take_plain", lambda *_, **__: False)
        assert explained(segments) == short


def in_order(parts: list[tuple[float, bool, tuple[object, ...]]]) -> list[Segment]:
    now, segments = 0.0, list[Segment]()
    for gap, forward, rest in parts:
        now += gap
        ends = (A, B) if forward else (B, A)
        segments.append(Segment(now, *ends, *rest))  # type: ignore[arg-type]
    return segments


def explained(segments: list[Segment]) -> dict[str, Any]:
    flow = Conversation(segments[0])
    for segment in segments:
        flow.add(segment)
    flow.close(segments[-1].time_s)
    return explanation(flow, segments[0].time_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_themselves_are_captures(tmp_path: Path, seed: bytes) -> None:
    assert explain_bytes(seed, tmp_path / "a")


def test_a_flood_of_flows_and_a_storm_of_copies_cost_bounded_memory(tmp_path: Path) -> None:
    """Forty thousand SYNs of as many flows, then thirty thousand copies of one segment."""
    path = tmp_path / "flood.pcap"
    with path.open("wb") as file:
        file.write(build.pcap([]))
        for n in range(70_000):
            ports = (n + 2, 5000) if n < 40_000 else (1, 1)
            frame = build.ethernet(
                build.ipv4(build.tcp(seq=7, flags=2 if n < 40_000 else 0x18, ports=ports, payload=b"x"))
            )
            file.write(struct.pack("<IIII", n, 0, len(frame), len(frame)) + frame)
    limit = 450 << 20
    began = time.monotonic()

    shown = subprocess.run(
        [sys.executable, "-m", "lab", "explain", "--json", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=240,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    assert time.monotonic() - began < 240
