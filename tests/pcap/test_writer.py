"""The files, octet by octet and as other tools read them."""

import resource
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from lab.pcap.writer import Packet, PcapngWriter, Source, Statistics
from tests.pcap.pcapng import INTERFACE, PACKET, SECTION, STATISTICS, Frame, blocks, frames, statistics

SOURCE = Source(
    interface="left0",
    description="router, towards the client",
    filter_expression="tcp or icmp or icmp6",
    hardware="x86_64",
    system="Linux 6.18",
    application="blackhole-lab 0.1.0",
)
STATISTICS_SEEN = Statistics(
    started_ns=1_700_000_000_000_000_000, ended_ns=1_700_000_009_000_000_001, received=7, dropped=3
)


def packet(size: int, *, outgoing: bool = False, length: int | None = None) -> Packet:
    return 1_700_000_000_123_456_789, size if length is None else length, outgoing, bytes(range(256))[:size]


def test_a_file_is_readable_before_the_first_packet(tmp_path: Path) -> None:
    writer = PcapngWriter(tmp_path / "a.pcapng", SOURCE)
    assert [block.kind for block in blocks(tmp_path / "a.pcapng")] == [SECTION, INTERFACE]
    writer.close()


def test_packets_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = PcapngWriter(path, SOURCE)
    sent = [packet(size, outgoing=bool(size % 2)) for size in range(60, 69)]
    writer.write(sent)
    writer.write([packet(100, length=1514)])
    assert writer.packets == 10
    assert frames(path) == [Frame(*each) for each in [*sent, packet(100, length=1514)]]
    writer.close()


def test_the_headers_say_where_the_packets_come_from(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    PcapngWriter(path, SOURCE).close()
    section, interface = blocks(path)
    assert section.options == {2: b"x86_64", 3: b"Linux 6.18", 4: b"blackhole-lab 0.1.0"}
    assert section.fixed == struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1)
    assert interface.fixed == struct.pack("=HHI", 1, 0, 0), "Ethernet, no limit on the length"
    assert interface.options == {
        2: b"left0",
        3: b"router, towards the client",
        9: b"\x09",
        11: b"\0tcp or icmp or icmp6",
        12: b"Linux 6.18",
    }


def test_the_counters_come_last(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = PcapngWriter(path, SOURCE)
    writer.write([packet(60)])
    writer.write_statistics(STATISTICS_SEEN)
    writer.close()
    assert [block.kind for block in blocks(path)] == [SECTION, INTERFACE, PACKET, STATISTICS]
    assert statistics(path) == {4: 7, 5: 3, 7: 3, 8: 4}
    (last,) = (block for block in blocks(path) if block.kind == STATISTICS)
    high, low = struct.unpack("=II", last.options[3])
    assert high << 32 | low == STATISTICS_SEEN.ended_ns


def test_a_disk_that_is_full_leaves_whole_packets(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = PcapngWriter(path, SOURCE)
    writer.write([packet(200)])
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # The kernel takes what fits and refuses the rest, as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, hard))
        with pytest.raises(OSError, match="too large"):
            writer.write([packet(200), packet(200)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(frames(path)) == writer.packets == 1
    writer.write([packet(90)])
    assert [frame.length for frame in frames(path)] == [200, 90]
    writer.close()


def descriptors(path: Path) -> list[Path]:
    """Of this file alone: what else a busy process has open comes and goes."""
    return [fd for fd in Path("/proc/self/fd").iterdir() if fd.resolve() == path]


def test_close_is_idempotent(tmp_path: Path) -> None:
    writer = PcapngWriter(tmp_path / "a.pcapng", SOURCE)
    held = descriptors(tmp_path / "a.pcapng")
    writer.close()
    with (tmp_path / "other").open("wb") as takes_the_number:
        writer.close()
        takes_the_number.write(b"still open")
    assert (len(held), descriptors(tmp_path / "a.pcapng")) == (1, [])


@pytest.mark.skipif(shutil.which("capinfos") is None, reason="capinfos is not installed")
def test_capinfos_reads_every_field(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = PcapngWriter(path, SOURCE)
    writer.write([packet(60), packet(61)])
    writer.write_statistics(STATISTICS_SEEN)
    writer.close()
    told = subprocess.run(["capinfos", path], check=True, capture_output=True, text=True).stdout
    for line in (
        "Number of packets:   2",
        "Capture hardware:    x86_64",
        "Capture oper-sys:    Linux 6.18",
        "Capture application: blackhole-lab 0.1.0",
        "Name = left0",
        "Description = router, towards the client",
        "Time precision = nanoseconds (9)",
        "Filter string = tcp or icmp or icmp6",
        "Number of stat entries = 1",
    ):
        assert line in told
