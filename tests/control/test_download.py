"""A capture as it goes to a client: what is whole, of every file that is left, and the counters behind it."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.control.app import create_app
from lab.control.controller import Controller
from lab.core.flow import Direction
from lab.core.segment import Flag, Segment
from lab.pcap import Capture
from lab.testbed.ports import CaptureFile, CaptureSummary
from tests.control.asking import Asking
from tests.control.fakes import FLOW, FakeRouter
from tests.control.wire import Sent, write
from tests.pcap.pcapng import statistics


@pytest.fixture
def client(controller: Controller) -> Asking:
    return Asking(create_app(controller))


def files(router: FakeRouter, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two files of the left side; a packet more is in the newer one than was there at the flush."""
    paths = [folder / "left.1.pcapng", folder / "left.2.pcapng"]
    write(paths[0], "left", [Sent(1.0, "client", Flag.ACK, seq=1)])
    write(paths[1], "left", [Sent(2.0, "client", Flag.ACK, seq=2)])
    whole = paths[1].stat().st_size
    write(paths[1], "left", [Sent(2.0, "client", Flag.ACK, seq=2), Sent(3.0, "client", Flag.ACK, seq=3)])
    flush = router.flush_capture

    def flushed() -> CaptureSummary:
        left = (CaptureFile(paths[0], paths[0].stat().st_size, 0.0), CaptureFile(paths[1], whole, 0.0))
        return replace(flush(), pieces={"left": left, "right": ()}, packets={"left": 2, "right": 0})

    monkeypatch.setattr(router, "flush_capture", flushed)
    return paths


def test_all_files_come_as_one_and_what_was_written_since_does_not(
    client: Asking, router: FakeRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(router, tmp_path, monkeypatch)
    answer = client.get("/captures/left")
    path = tmp_path / "got.pcapng"
    path.write_bytes(answer.content)
    capture = Capture(path)
    segments = [one for one in capture.packets() if isinstance(one, Segment)]

    assert [segment.seq for segment in segments] == [1, 2]
    assert FLOW.direction_of(segments[0].source, segments[0].destination) is Direction.FORWARD
    assert capture.truncated is None
    assert list(statistics(path).values()) == [2, 0, 0, 2]
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["content-type"] == "application/vnd.tcpdump.pcap"
    assert 'filename="left.pcapng"' in answer.headers["content-disposition"]


def test_a_file_that_was_removed_between_two_looks_is_looked_for_again(
    client: Asking, router: FakeRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(router, tmp_path, monkeypatch)
    flushed, hidden = router.flush_capture, tmp_path / "hidden"
    tries: list[int] = []

    def flush() -> CaptureSummary:
        summary = flushed()
        tries.append(1)
        # The first time the file goes after the question, and the second time it is there.
        if len(tries) == 1:
            paths[0].rename(hidden)
        return summary

    def back() -> CaptureSummary:
        if hidden.exists():
            hidden.rename(paths[0])
        return flush()

    monkeypatch.setattr(router, "flush_capture", back)

    assert client.get("/captures/left").status_code == 200
    assert len(tries) == 2


def test_files_that_always_vanish_are_a_problem(
    client: Asking, router: FakeRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = router.flush_capture
    gone = (CaptureFile(tmp_path / "gone.pcapng", 1, 0.0),)
    monkeypatch.setattr(router, "flush_capture", lambda: replace(flushed(), pieces={"left": gone, "right": gone}))
    answer = client.get("/captures/right")

    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#no-capture")
