from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.pcap import Capture, flows
from lab.pcap.flows import read_flows
from tests.pcap import build


def frame(*, seq: int = 1, flags: int = 0x10, ports: tuple[int, int] = (40000, 5000), payload: bytes = b"") -> bytes:
    return build.ethernet(build.ipv4(build.tcp(seq=seq, flags=flags, ports=ports, payload=payload)))


def write(tmp_path: Path, frames: list[tuple[float, bytes]]) -> Capture:
    path = tmp_path / "a.pcap"
    path.write_bytes(build.pcap(frames))
    return Capture(path)


def test_both_directions_belong_to_one_conversation(tmp_path: Path) -> None:
    reply = build.ethernet(build.ipv4(build.tcp(flags=0x12, ports=(5000, 40000)), ends=("198.51.100.1", "192.0.2.1")))
    found = read_flows(write(tmp_path, [(1, frame(flags=2)), (2, reply), (3, frame(seq=2, ports=(40001, 5000)))]))

    assert [str(c.flow.client) for c in found.conversations] == ["192.0.2.1:40000", "192.0.2.1:40001"]
    assert (found.origin, found.until) == (1, 3)


def test_reused_ports_make_a_new_conversation(tmp_path: Path) -> None:
    found = read_flows(write(tmp_path, [(1, frame(flags=2)), (2, frame(seq=2)), (9, frame(seq=70000, flags=2))]))

    assert [sum(c.classes.values()) for c in found.conversations] == [2, 1]


def test_icmp_goes_to_the_flow_that_it_quotes(tmp_path: Path) -> None:
    quoted = build.ipv4(build.tcp())[:28]
    icmp = build.ethernet(build.ipv4(b"\x03\x01" + bytes(6) + quoted, protocol=1))
    found = read_flows(write(tmp_path, [(1, icmp), (2, frame()), (3, icmp)]))

    assert found.conversations[0].icmp == {"host unreachable, from 192.0.2.1": 1}


def test_a_flood_is_counted_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MAX_FLOWS", 10)
    found = read_flows(write(tmp_path, [(n, frame(flags=2, ports=(n + 1, 5000))) for n in range(25)]))

    assert (len(found.conversations), found.not_followed) == (10, 15)


def test_a_capture_without_tcp_is_the_authors_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 UDP"):
        read_flows(write(tmp_path, [(1, build.ethernet(build.ipv4(bytes(8), protocol=17)))]))


def test_progress_is_told(tmp_path: Path) -> None:
    ticks: list[int] = []
    read_flows(write(tmp_path, [(1, frame())]), tick=lambda: ticks.append(1))

    assert ticks == [1]
