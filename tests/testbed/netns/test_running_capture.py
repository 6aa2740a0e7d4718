"""A capture that is read while it goes on, and one that is bounded."""

import itertools
import time
from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.core.segment import Segment
from lab.pcap import Capture
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import CaptureSummary, Process
from tests.pcap.pcapng import frames

PORT = 5100
FILL_BYTES = 4 * 1024 * 1024
LIMIT_BYTES = 512 * 1024

OVERTAKEN_NS = 10_000_000
"""The kernel dates a packet before that takes its place in the ring, and two processors may do so crosswise; a virtual
one may stand still in between."""


@pytest.fixture(scope="module")
def server(testbed: NetnsTestbed) -> Process:
    program = testbed.server.spawn_module("lab.programs.server", [str(PORT), "--silent"])
    program.wait_for_line('"listening"', 10)
    return program


def talk(testbed: NetnsTestbed, *options: str) -> Process:
    return testbed.client.spawn_module("lab.programs.client", ["server", str(PORT), *options])


def payload(path: Path, octets: int, folder: Path) -> int:
    """Octets of payload in the first so many octets of a capture."""
    whole = folder / "whole.pcapng"
    whole.write_bytes(path.read_bytes()[:octets])
    capture = Capture(whole)
    found = sum(one.length for one in capture.packets() if isinstance(one, Segment))
    assert capture.truncated is None, "it ends between two packets"
    return found


def total(summary: CaptureSummary, folder: Path) -> dict[str, int]:
    return {side: sum(payload(one.path, one.octets, folder) for one in files) for side, files in summary.pieces.items()}


@pytest.mark.usefixtures("server")
def test_a_running_capture_is_complete_up_to_the_flush_and_goes_on(testbed: NetnsTestbed, tmp_path: Path) -> None:
    testbed.router.start_capture(tmp_path)
    client = talk(testbed, "--connect-only")
    client.wait_for_line('"connected"', 10)
    sent = 0
    counts = []
    for _ in range(3):
        asked = time.monotonic()
        client.write("send\n")
        line = client.wait_for_line('"sent"', 10, since=asked)
        sent = int(line.text.partition('"total": ')[2].rstrip("}"))
        flushed = testbed.router.flush_capture()
        counts.append((total(flushed, tmp_path), sent))
    stopped = testbed.router.stop_capture()
    client.write("quit\n")

    assert counts == [({"left": sent, "right": sent}, sent) for _, sent in counts]
    assert flushed.started_at == stopped.started_at <= flushed.stopped_at <= stopped.stopped_at
    assert total(stopped, tmp_path) == {"left": sent, "right": sent}


@pytest.mark.usefixtures("server")
def test_a_flush_ends_while_packets_keep_coming(testbed: NetnsTestbed, tmp_path: Path) -> None:
    testbed.router.start_capture(tmp_path, ring_bytes=64 * 1024 * 1024)
    client = talk(testbed, "--fill", str(16 * FILL_BYTES))
    client.wait_for_line('"connected"', 10)
    counts, longest_s = [0], 0.0
    deadline = time.monotonic() + 10
    while counts[-1] < 1000:
        began = time.monotonic()
        assert began < deadline, counts
        counts.append(sum(testbed.router.flush_capture().packets.values()))
        longest_s = max(longest_s, time.monotonic() - began)
    testbed.router.stop_capture()
    client.write("quit\n")

    assert counts == sorted(counts)
    assert longest_s < 2


@pytest.mark.usefixtures("server")
def test_a_bounded_capture_keeps_the_newest_packets_of_both_sides(testbed: NetnsTestbed, tmp_path: Path) -> None:
    testbed.router.start_capture(tmp_path, ring_bytes=64 * 1024 * 1024, limit_bytes=LIMIT_BYTES)
    client = talk(testbed, "--fill", str(FILL_BYTES))
    client.wait_for_line(f'"total": {FILL_BYTES}', 20)
    summary = testbed.router.stop_capture()
    client.write("quit\n")

    for side, files in summary.pieces.items():
        assert len(files) == 2, side
        assert LIMIT_BYTES / 2 <= sum(one.path.stat().st_size for one in files) < 2 * LIMIT_BYTES
        assert summary.started_at < files[0].since < files[1].since
        seen = [frame.time_ns for one in files for frame in frames(one.path)]
        assert all(later - earlier > -OVERTAKEN_NS for earlier, later in itertools.pairwise(seen))
        assert seen[0] / 1e9 - summary.clocks[0].offset == pytest.approx(files[0].since, abs=1e-6)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_flush_needs_a_capture(testbed: NetnsTestbed) -> None:
    with pytest.raises(UsageError, match="A running capture was expected"):
        testbed.router.flush_capture()


@pytest.mark.usefixtures("server")
def test_the_routers_flows_are_those_of_its_clients(testbed: NetnsTestbed) -> None:
    testbed.router.flows()
    assert testbed.router.firewall
    client = talk(testbed, "--connect-only")
    client.wait_for_line('"connected"', 10)
    flows = [one.flow for one in testbed.router.flows()]
    client.write("quit\n")

    assert [(flow.client.address, str(flow.server)) for flow in flows] == [
        (testbed.client.ipv4, f"{testbed.server.ipv4}:{PORT}")
    ]
