"""Every line of the log is JSON, also after one that could not be written whole."""

import json
import os
from pathlib import Path

import pytest

from lab.live.server.framelog import FrameLog


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_frames_notes_and_nonsense_are_lines(tmp_path: Path) -> None:
    log = FrameLog(tmp_path / "log")
    log.frame(1, "server", b'{"setupComplete":{}}', t=1.5)
    log.nonsense(1, b'\xff"\n', "Invalid", t=2.0)
    log.note("attach", {"connection": 1}, t=2.5)
    log.close()

    frame, nonsense, note = lines(tmp_path / "log")
    assert (frame["from"], frame["octets"], frame["frame"], frame["t"]) == ("server", 20, {"setupComplete": {}}, 1.5)
    assert nonsense["nonsense"] == '\\xff"\n'
    assert (note["event"], note["connection"]) == ("attach", 1)


def test_octets_are_counted_and_not_kept(tmp_path: Path) -> None:
    log = FrameLog(tmp_path / "log")
    log.frame(1, "client", b'{"audio":{"data":"' + b"A" * 4000 + b'","mimeType":"audio/pcm"}}', t=0)
    log.close()

    assert lines(tmp_path / "log")[0]["frame"] == {"audio": {"data": "(4000 characters)", "mimeType": "audio/pcm"}}


def test_a_line_that_was_cut_off_stays_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FrameLog(tmp_path / "log")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, octets: write(fd, octets[:10]))
    log.note("first", {}, t=0)
    monkeypatch.setattr(os, "write", write)
    log.note("second", {}, t=0)
    log.close()

    first, second = (tmp_path / "log").read_text().splitlines()
    assert len(first) == 10
    assert json.loads(second)["event"] == "second"
    assert log.lost == 1


def test_no_file_no_log() -> None:
    log = FrameLog(None)
    log.frame(1, "server", b"{}", t=0)
    log.note("x", {}, t=0)
    log.close()
    assert not log.on
