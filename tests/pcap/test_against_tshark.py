"""Frame by frame against tshark's analysis; every disagreement is pinned here and explained in docs/tshark.md."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.synthetic import write
from lab.core.retransmission import Classified, FlowClassifier, SegmentClass, flow_of
from lab.core.segment import Segment
from lab.pcap import Capture
from tests.pcap.shared import capture

PAGE = Path(__file__).parents[2] / "docs" / "tshark.md"

OWN = (
    "busy_default",
    "busy_retries2_5",
    "busy_uto20",
    "heal_after_30s",
    "icmp_unreach",
    "idle_keepalive_10_5_3",
    "local_output_drop",
    "oneway_s2c",
    "syn_blackhole_linear0",
    "zero_window_alive",
)
AGREED = (
    *(f"own/{name}.pcap" for name in OWN),
    "public/01_suricata-verify_bug-2646-01.pcap",
    "public/02_nDPI_bt-http.pcapng",
    "public/05_suricata-verify_bug-28.pcap",
    "public/07_nDPI_conncheck.pcap",
    "public/12_nDPI_syslog.pcap",
    "public/16_nDPI_edonkey.pcap",
)
"""Ordinary captures: the same frames are copies."""

Sets = dict[str, set[int]]


def theirs(path: Path) -> Sets:
    """Frame numbers that carry tshark's marks."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    marks = ("retransmission", "keep_alive", "zero_window_probe", "out_of_order")
    argv = [tshark, "-r", str(path), "-T", "fields", "-e", "frame.number"]
    for mark in marks:
        argv += ["-e", f"tcp.analysis.{mark}"]
    rows = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    sets: Sets = {mark: set() for mark in marks}
    for row in rows:
        number, *values = row.split("\t")
        for mark, value in zip(marks, values, strict=True):
            if value:
                sets[mark].add(int(number))
    return sets


def ours(path: Path) -> dict[int, Classified]:
    """Every segment's class by frame number."""
    flows: dict[object, FlowClassifier] = {}
    numbers: dict[tuple[int, int], int] = {}
    found: dict[int, Classified] = {}
    source = Capture(path)
    for segment in source.packets():
        if not isinstance(segment, Segment):
            continue
        key = frozenset((segment.source, segment.destination))
        flow = flows.get(key)
        if flow is None or flow.opens_anew(segment):
            flow = flows[key] = FlowClassifier(flow_of(segment))
        item = flow.observe(segment)
        numbers[id(flow), item.number] = source.frames
        found[source.frames] = item
        for correction in flow.revised:
            found[numbers[id(flow), correction.number]] = correction
        flow.revised.clear()
    return found


def copies(found: dict[int, Classified]) -> set[int]:
    return {number for number, item in found.items() if item.segment_class.is_copy}


def probes(found: dict[int, Classified]) -> set[int]:
    kinds = {SegmentClass.KEEPALIVE_PROBE, SegmentClass.WINDOW_PROBE}
    return {number for number, item in found.items() if item.segment_class in kinds}


@pytest.mark.parametrize("name", AGREED)
def test_the_same_frames_are_copies_in_ordinary_captures(name: str) -> None:
    path = capture(name)
    found, marks = ours(path), theirs(path)

    assert copies(found) == marks["retransmission"]
    assert probes(found) == marks["keep_alive"] | marks["zero_window_probe"]


def test_the_same_frames_are_copies_in_a_synthetic_capture_with_known_losses(tmp_path: Path) -> None:
    path = tmp_path / "synthetic.pcap"
    losses = write(path, 4_000, seed=30)
    found = ours(path)

    assert copies(found) == theirs(path)["retransmission"]
    kinds = [item.segment_class for item in found.values()]
    assert kinds.count(SegmentClass.FAST_COPY) == losses.fast > 0
    assert kinds.count(SegmentClass.TIMEOUT_COPY) == losses.timeouts > 0


def test_a_copy_that_tshark_takes_for_reordering() -> None:
    path = capture("public/09_zeek_pppoe-over-qinq.pcap")
    found, marks = ours(path), theirs(path)

    assert copies(found) - marks["retransmission"] == marks["out_of_order"] == {57, 58}
    assert marks["retransmission"] - copies(found) == set()


def test_a_second_vlan_that_tshark_takes_for_loss() -> None:
    path = capture("public/28_zeek_vlan-collisions.pcap")
    found, marks = ours(path), theirs(path)
    taps = {number for number, item in found.items() if item.segment_class is SegmentClass.TAP_DUPLICATE}

    assert copies(found) == set()
    assert probes(found) == set()
    assert marks["keep_alive"] == {26, 27, 36, 37}
    assert len(marks["retransmission"]) == 18
    assert marks["retransmission"] | marks["keep_alive"] <= taps


def test_frames_captured_twice_and_damaged_headers_that_tshark_takes_for_loss() -> None:
    path = capture("public/26_nDPI_reasm_crash_anon.pcapng")
    found, marks = ours(path), theirs(path)

    assert copies(found) <= marks["retransmission"]
    assert copies(found) == {64, 163, 166, 170, 198}
    assert len(marks["retransmission"]) == 65


def test_the_page_explains_every_capture_in_which_both_disagree() -> None:
    page = PAGE.read_text()

    for name in ("09_zeek_pppoe-over-qinq", "26_nDPI_reasm_crash_anon", "28_zeek_vlan-collisions", "zero_window_alive"):
        assert re.search(rf"^\| {name}", page, re.MULTILINE), name
