from pathlib import Path

from rich.console import Console

from lab.pcap import Capture
from lab.pcap.flows import read_flows
from lab.report.explanation import as_object, as_text
from tests.pcap import build


def talk(port: int, *, dark: bool = False) -> list[tuple[float, bytes]]:
    """A request with its answer, or a request that is resent into nothing."""
    ends = ("198.51.100.1", "192.0.2.1")
    request = build.ethernet(build.ipv4(build.tcp(seq=1, ack=1, payload=b"hello", ports=(port, 80))))
    answer = build.ethernet(build.ipv4(build.tcp(seq=1, ack=6, ports=(80, port)), ends=ends))
    if dark:
        return [(at, request) for at in (1.0, 1.2, 1.6, 2.4)]
    return [(1.0, request), (1.1, answer)]


def shown(tmp_path: Path, frames: list[tuple[float, bytes]]) -> str:
    path = tmp_path / "a.pcap"
    path.write_bytes(build.pcap(frames))
    console = Console(width=80, record=True, markup=False, force_terminal=False)
    with console.capture() as captured:
        console.print(as_text(read_flows(Capture(path))))
    return captured.get()


def test_healthy_flows_take_one_line_together_behind_what_needs_words(tmp_path: Path) -> None:
    frames = [frame for port in range(40000, 40009) for frame in talk(port)]
    text = shown(tmp_path, frames + talk(50000, dark=True))

    assert "9 healthy flows, 18 segments: nothing lost." in text
    assert text.index("192.0.2.1:50000") < text.index("9 healthy flows")
    assert "192.0.2.1:40001" not in text


def test_a_few_flows_are_each_told(tmp_path: Path) -> None:
    text = shown(tmp_path, talk(40000))

    assert "192.0.2.1:40000 > 198.51.100.1:80  (client assumed)" in text
    assert "Nothing was lost as far as this capture shows." in text


def test_many_dark_flows_are_cut_short(tmp_path: Path) -> None:
    text = shown(tmp_path, [frame for port in range(40000, 40030) for frame in talk(port, dark=True)])

    assert text.count("(client assumed)") == 20
    assert "10 more flows with something to say: see --json." in text


def test_notes_tell_what_was_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    fragment = build.ethernet(build.ipv4(bytes(8), fragment=9))
    path.write_bytes(build.pcap([*talk(40000), (3, fragment), (4, bytes(3))])[:-1])
    found = as_object(read_flows(Capture(path)))

    assert found["truncated"] == "is cut off inside a record"
    assert [note.split(" ")[0] for note in found["notes"]] == ["The", "1"]
    assert (found["frames"], found["segments"]) == (3, 2)
