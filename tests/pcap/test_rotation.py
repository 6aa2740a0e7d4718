from pathlib import Path

from lab.pcap import Capture
from lab.pcap.rotation import RotatingWriter
from lab.pcap.writer import Packet, Source

SOURCE = Source("left0", "", "", "x86_64", "Linux", "tests")
LIMIT = 20_000


def packet(number: int) -> Packet:
    return (1_000_000_000 * number, 500, False, bytes(500))


def times(path: Path) -> list[float]:
    """When each frame was caught; none of them holds a segment."""
    capture = Capture(path)
    assert list(capture.packets()) == []
    assert capture.truncated is None
    assert capture.first_time_s is not None
    return [capture.first_time_s + n for n in range(capture.frames)]


def test_without_a_bound_there_is_one_file(tmp_path: Path) -> None:
    writer = RotatingWriter(tmp_path / "left.pcapng", SOURCE)
    for number in range(100):
        writer.write([packet(number)])
    writer.close()

    assert [path.name for path in tmp_path.iterdir()] == ["left.pcapng"]
    assert times(tmp_path / "left.pcapng") == [float(n) for n in range(100)]
    assert [(part.path.name, part.since_ns) for part in writer.parts] == [("left.pcapng", None)]


def test_with_a_bound_the_newest_packets_are_kept_without_a_gap(tmp_path: Path) -> None:
    writer = RotatingWriter(tmp_path / "left.pcapng", SOURCE, LIMIT)
    for number in range(200):
        writer.write([packet(number)])
        on_disk = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert on_disk <= LIMIT + 2000
    older, newer = writer.parts
    writer.close()

    kept = times(older.path) + times(newer.path)
    assert kept == [float(n) for n in range(200 - len(kept), 200)]
    assert on_disk >= LIMIT / 2
    assert sorted(tmp_path.iterdir()) == sorted([older.path, newer.path])
    assert (older.since_ns, newer.since_ns) == (packet(200 - len(kept))[0], int(times(newer.path)[0] * 1e9))
    assert (older.octets, newer.octets) == (older.path.stat().st_size, newer.path.stat().st_size)
    assert writer.packets == 200


def test_the_two_files_joined_are_one_capture(tmp_path: Path) -> None:
    writer = RotatingWriter(tmp_path / "left.pcapng", SOURCE, LIMIT)
    for number in range(60):
        writer.write([packet(number)])
    writer.close()
    joined = tmp_path / "joined.pcapng"
    joined.write_bytes(b"".join(part.path.read_bytes() for part in writer.parts))

    assert len(times(joined)) == sum(len(times(part.path)) for part in writer.parts)


def test_a_write_larger_than_the_bound_is_kept_whole(tmp_path: Path) -> None:
    writer = RotatingWriter(tmp_path / "left.pcapng", SOURCE, 1000)
    writer.write([packet(n) for n in range(10)])
    writer.write([packet(n) for n in range(10, 20)])
    writer.close()

    assert [len(times(part.path)) for part in writer.parts] == [10, 10]
