import errno
import json
import os
import threading
from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.core.timeline import Observation
from lab.report.timeline import TimelineWriter, read_timeline


def observation(at: float, kind: str = "line", **detail: object) -> Observation:
    return Observation(at, "client", kind, detail)


def test_lines_are_there_as_soon_as_they_are_added(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    writer = TimelineWriter(path)
    writer.add(observation(99.0, text="hello"))
    writer.anchor(100.0)
    writer.add(observation(100.25, text="gone"))
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first == {"at": 99.0, "t_s": None, "source": "client", "kind": "line", "detail": {"text": "hello"}}
    assert second["t_s"] == 0.25
    writer.close()


def test_a_closed_timeline_is_sorted_and_counts_from_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    with TimelineWriter(path) as writer:
        writer.add(observation(99.0))
        writer.anchor(100.0)
        writer.add(observation(102.0))
        writer.add(observation(101.0))
    assert [json.loads(line)["t_s"] for line in path.read_text().splitlines()] == [-1.0, 1.0, 2.0]
    writer.close()


def test_without_a_cut_nothing_is_dated_and_nothing_lost(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    with TimelineWriter(path) as writer:
        writer.add(observation(99.0))
    assert len(path.read_text().splitlines()) == 1
    assert read_timeline(path).entries == ()


def test_what_is_read_is_in_order_and_dated_from_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    writer = TimelineWriter(path)
    for each in (observation(99.5), observation(101.5), observation(100.0, "cut"), observation(100.5)):
        writer.add(each)
    assert [t for t, _ in read_timeline(path).entries] == [-0.5, 0.0, 0.5, 1.5]
    writer.close()


def test_an_existing_timeline_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    for at in (1.0, 2.0):
        with TimelineWriter(path) as writer:
            writer.add(observation(at))
    assert len(path.read_text().splitlines()) == 2


def test_lines_that_are_no_observation_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    good = {"at": 100.0, "t_s": 0.0, "source": "router", "kind": "cut", "detail": {}}
    bad = [
        "not json",
        "[]",
        '{"at": 1}',
        json.dumps({**good, "at": "noon"}),
        json.dumps({**good, "at": True}),
        json.dumps({**good, "t_s": float("nan")}),
        json.dumps({**good, "detail": []}),
        json.dumps(good)[:20],
    ]
    path.write_text("\n".join([*bad[:4], json.dumps(good), "", *bad[4:]]))
    timeline = read_timeline(path)
    assert [each.kind for _, each in timeline.entries] == ["cut"]
    assert timeline.unreadable == len(bad)


def test_a_timeline_that_is_missing_or_binary_is_empty(tmp_path: Path) -> None:
    assert read_timeline(tmp_path / "none").entries == ()
    (tmp_path / "binary").write_bytes(os.urandom(500).replace(b"\n", b"") + b"\n\xff\xfe")
    assert read_timeline(tmp_path / "binary").entries == ()


def test_lines_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    with TimelineWriter(path) as writer:
        writer.anchor(0.0)
        threads = [threading.Thread(target=_add_many, args=(writer, origin)) for origin in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    timeline = read_timeline(path)
    assert len(timeline.entries) == 400
    assert timeline.unreadable == 0


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = TimelineWriter(tmp_path / "timeline.jsonl")
    writer.add(observation(1.0))
    writer.anchor(1.0)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(EnvironmentNotReady, match="No space left"):
        writer.close()
    assert len((tmp_path / "timeline.jsonl").read_text().splitlines()) == 1, "what was written stays"


def test_a_figure_that_json_cannot_hold_is_the_authors_mistake(tmp_path: Path) -> None:
    with TimelineWriter(tmp_path / "timeline.jsonl") as writer, pytest.raises(ValueError, match="JSON"):
        writer.add(observation(1.0, value=float("nan")))


def _add_many(writer: TimelineWriter, origin: int) -> None:
    for index in range(100):
        writer.add(observation(origin + index / 1000, text="x" * 200))
