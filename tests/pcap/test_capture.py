"""Whole files: formats, damage, and what the messages say."""

import gzip
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.core.segment import Segment
from lab.pcap import Capture, read_packets, read_segments
from tests.pcap import build

FRAME = build.ethernet(build.ipv4(build.tcp(payload=b"hello")))
Save = Callable[[bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(data: bytes) -> Path:
        path = tmp_path / "a.pcap"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "tick_s"), [(build.MICRO, 1e-6), (build.NANO, 1e-9)])
def test_classic_pcap_in_both_orders_and_units(save: Save, order: str, magic: int, tick_s: float) -> None:
    path = save(build.pcap([(1.5, FRAME), (2.25, FRAME)], order=order, magic=magic))

    found = list(read_segments(path))

    assert [s.time_s for s in found] == pytest.approx([1.5, 2.25], abs=tick_s)
    assert {s.length for s in found} == {5}


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_with_sections_interfaces_and_all_packet_blocks(save: Save, order: str) -> None:
    nanoseconds = build.interface(options=build.option(9, b"\x09", order) + build.option(0, b"", order), order=order)
    binary = build.interface(build.RAW, options=build.option(9, b"\x8a", order), order=order)
    path = save(
        build.section(order)
        + build.interface(order=order)
        + build.block(0xBAD, b"passed over", order)
        + nanoseconds
        + binary
        + build.enhanced(FRAME, 1_500_000, 0, order)
        + build.enhanced(FRAME, 2_500_000_000, 1, order)
        + build.enhanced(FRAME[14:], 3 * 1024 + 512, 2, order)
        + build.old(FRAME, 4_500_000, order)
        + build.section("<")
        + build.interface(options=build.option(14, (100).to_bytes(8, "little")))
        + build.enhanced(FRAME, 5_500_000)
        + build.simple(FRAME)
    )

    found = list(read_segments(path))

    assert [s.time_s for s in found] == pytest.approx([1.5, 2.5, 3.5, 4.5, 105.5, 100.0])
    assert {s.length for s in found} == {5}


def test_gzip_is_seen_through_whatever_the_name(save: Save) -> None:
    path = save(gzip.compress(build.pcap([(1, FRAME)])))

    assert len(list(read_segments(path))) == 1


def test_a_pipe_of_a_capture_is_read_without_seeking(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(build.pcap([(1, FRAME)] * 3))
    program = "import sys; from lab.pcap import read_segments; print(len(list(read_segments(sys.argv[1]))))"

    with path.open("rb") as file:
        shown = subprocess.run(
            [sys.executable, "-c", program, "/dev/stdin"], stdin=file, capture_output=True, text=True, check=True
        )

    assert shown.stdout == "3\n"


@pytest.mark.parametrize(
    "data",
    [
        build.pcap([(1, FRAME), (2, FRAME)])[:-1],
        build.pcap([(1, FRAME), (2, FRAME)])[: -len(FRAME) - 3],
        build.section() + build.interface() + build.enhanced(FRAME, 1) + build.enhanced(FRAME, 2)[:-1],
        build.section() + build.interface() + build.enhanced(FRAME, 1) + b"\x06\x00",
        build.section() + build.interface() + build.enhanced(FRAME, 1) + build.block(6, b"")[:4] + b"\xff\xff\xff\x7f",
        build.section() + build.interface() + build.enhanced(FRAME, 1) + build.enhanced(FRAME, 2, number=9),
        build.section() + build.interface() + build.enhanced(FRAME, 1) + build.block(6, b"\xff" * 32),
        build.pcap([(1, FRAME)]) + b"\xff" * 16 + FRAME,
        gzip.compress(build.pcap([(1, FRAME)] * 2))[:-9],
    ],
    ids=[
        "in a packet",
        "in a header",
        "in a block",
        "in a block header",
        "huge block",
        "no interface",
        "lying",
        "huge",
        "gzip",
    ],
)
def test_a_capture_that_is_cut_off_or_damaged_gives_what_could_be_read_and_says_so(save: Save, data: bytes) -> None:
    capture = Capture(save(data))

    assert len([p for p in capture.packets() if isinstance(p, Segment)]) >= 1
    assert capture.truncated is not None

    found = read_packets(save(data))
    assert isinstance(next(found), Segment)
    with pytest.raises(UsageError, match=r"whole capture.*after [12] frames"):
        list(found)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x7fELF and so on", "begins with 7f 45 4c 46"),
        (b"ab", "begins with 61 62"),
        (build.pcap([])[:10], "cut off inside a record before its first frame"),
        (build.section()[:9], "before its first frame"),
        (gzip.compress(b"text", mtime=0), "begins with 1f 8b"),
        (b"\x1f\x8b\x08 broken", "damaged compressed data"),
    ],
)
def test_what_is_no_capture_is_refused_with_what_was_seen(save: Save, data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(read_packets(save(data)))


def test_a_missing_file_and_a_folder_are_the_authors_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        list(read_packets(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="directory"):
        list(read_packets(tmp_path))


def test_a_rare_link_type_is_dissected_by_scapy(save: Save) -> None:
    packet = build.ipv4(build.tcp(payload=b"hello"))
    ppp = b"\xff\x03\x00\x21" + packet  # LINKTYPE_PPP_HDLC
    path = save(build.pcap([(1, ppp), (2, b"\x00")], link_type=9))

    (segment,) = read_segments(path)

    assert (segment.length, segment.source.address) == (5, "192.0.2.1")


def test_an_unknown_link_type_says_so(save: Save) -> None:
    with pytest.raises(UsageError, match="link type 60000"):
        list(read_packets(save(build.pcap([(1, FRAME)], link_type=60000))))


def test_common_captures_are_read_without_scapy(save: Save) -> None:
    path = save(build.pcap([(1, FRAME)]))
    program = (
        "import sys; from lab.pcap import read_segments; list(read_segments(sys.argv[1]));"
        "print([m for m in ('scapy', 'numpy', 'rich') if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)

    assert shown.stdout == "[]\n"


def test_a_capture_without_tcp_says_what_it_holds(save: Save) -> None:
    udp = build.ethernet(build.ipv4(bytes(8), protocol=17))
    capture = Capture(save(build.pcap([(1, udp), (2, udp), (3, build.ethernet(bytes(28), 0x0806))])))

    assert list(capture.packets()) == []
    assert "3 frames without it (2 UDP, 1 ARP)" in str(capture.no_tcp())


def test_reading_can_be_followed(save: Save) -> None:
    path = save(build.pcap([(7, FRAME)] * 1000))
    capture = Capture(path)

    assert (capture.read_octets, capture.size) == (0, path.stat().st_size)
    for _ in capture.packets():
        assert 0 < capture.read_octets <= capture.size
    assert (capture.frames, capture.first_time_s) == (1000, 7)


def test_a_block_length_is_not_believed_before_its_octets_are_there(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    read = io.BufferedReader.read

    class Watched(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return read(self, size)

    def opened(self: Path, *_: object, **__: object) -> io.BufferedReader:
        return Watched(io.FileIO(self))

    path = save(build.section() + b"\xad\x0b\x00\x00\xfc\xff\xff\xff" + bytes(100))
    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(UsageError, match="before its first frame"):
        list(read_packets(path))

    assert max(asked) <= 1 << 16
