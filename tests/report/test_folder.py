import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.report.folder import RunFolder, write_whole
from lab.report.record import Check
from tests.report.cases import both_ways, interrupted

STARTED = datetime(2024, 3, 1, 12, 30, 5, tzinfo=UTC)


def test_the_default_folder_is_named_after_time_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create("Busy, both ways!", started=STARTED)
    assert folder.path == Path("runs/20240301-123005-busy-both-ways")
    assert folder.path.is_dir()
    assert list(folder.path.iterdir()) == []


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = RunFolder.create("demo", started=STARTED)
    second = RunFolder.create("demo", started=STARTED)
    assert first.path != second.path


def test_a_folder_that_was_named_is_made_with_its_parents(tmp_path: Path) -> None:
    folder = RunFolder.create("demo", started=STARTED, out=tmp_path / "a" / "b")
    assert folder.path == tmp_path / "a" / "b"
    assert folder.path.is_dir()


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    assert RunFolder.create("demo", started=STARTED, out=tmp_path).path == tmp_path


def test_a_folder_with_foreign_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"thesis\.tex") as caught:
        RunFolder.create("demo", started=STARTED, out=tmp_path)
    assert caught.value.fix
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_foreign_record_json_does_not_make_a_run_folder(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"artist": "Nina Simone"}')
    with pytest.raises(UsageError):
        RunFolder.create("demo", started=STARTED, out=tmp_path)
    assert (tmp_path / "record.json").exists()


@pytest.mark.parametrize("kept", ["record.json", "timeline.jsonl"])
def test_an_earlier_run_is_evidence_and_never_overwritten(kept: str, tmp_path: Path) -> None:
    RunFolder(tmp_path).write_record(interrupted()[0])
    (tmp_path / "record.json").rename(tmp_path / kept)
    before = (tmp_path / kept).read_bytes()
    with pytest.raises(UsageError, match="an earlier run, which is kept"):
        RunFolder.create("demo", started=STARTED, out=tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(kept, before)]


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        RunFolder.create("demo", started=STARTED, out=tmp_path / "out")
    with pytest.raises(UsageError):
        RunFolder.create("demo", started=STARTED, out=tmp_path / "out" / "below")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_full_or_read_only_disk_is_found_before_the_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", _failing(number))
    with pytest.raises(EnvironmentNotReady, match=str(tmp_path)) as caught:
        RunFolder.create("demo", started=STARTED, out=tmp_path)
    assert number == errno.EIO or "--out DIR" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EnvironmentNotReady, match="cannot be written"):
        RunFolder.create("demo", started=STARTED, out=tmp_path / "out")
    tmp_path.chmod(0o700)


def test_a_record_is_read_back_as_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    record, _ = both_ways()
    folder.write_record(record)
    assert folder.read_record() == record


def test_a_record_that_no_reader_would_accept_is_not_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(interrupted()[0])
    wrong = both_ways()[0].model_copy(update={"checks": (Check(name="bystander", ok=False),)})
    with pytest.raises(ValueError, match="cannot have failed checks"):
        folder.write_record(wrong)
    assert folder.read_record() == interrupted()[0]


def test_a_write_that_fails_leaves_the_old_record_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(interrupted()[0])
    monkeypatch.setattr(os, "fsync", _failing(errno.ENOSPC))
    with pytest.raises(EnvironmentNotReady, match="No space left"):
        folder.write_record(both_ways()[0])
    assert folder.read_record() == interrupted()[0]
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_artefacts_are_relative_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "pcaps").mkdir()
    for name in ("z.log", "pcaps/left.pcapng", "record.json", ".record.json.x1"):
        (tmp_path / name).write_text("")
    assert RunFolder(tmp_path).artefacts() == ("pcaps/left.pcapng", "record.json", "z.log")


def test_a_folder_without_a_record_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it has no record\.json"):
        RunFolder(tmp_path).read_record()
    with pytest.raises(UsageError, match=r"it has no record\.json"):
        RunFolder(tmp_path / "missing").read_record()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "not JSON"),
        ('{"schema": 1, "outc', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("\x80", "not JSON"),
        ("[]", "no key `schema`"),
        ('{"outcome": "confirmed", "backend": "netns"}', "no key `schema`"),
        ('{"schema": 2, "outcome": "confirmed"}', "has schema 2, this version of the lab reads schema 1"),
        ('{"schema": true, "outcome": "invalid", "backend": "netns"}', "has schema True"),
        ('{"schema": 1, "outcome": "passed", "backend": "netns"}', "broken at outcome"),
        ('{"schema": 1, "outcome": "confirmed", "backend": "netns"}', "must list the checks"),
        ('{"schema": 1, "outcome": "invalid", "backend": "netns", "horizon_s": NaN}', "broken at"),
    ],
)
def test_a_broken_record_says_what_was_seen(text: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=seen) as caught:
        RunFolder(tmp_path).read_record()
    assert str(tmp_path / "record.json") in str(caught.value)


def test_the_record_on_disk_is_plain_json(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_record(both_ways()[0])
    assert json.loads((tmp_path / "record.json").read_text())["outcome"] == "confirmed"


def _failing(number: int) -> object:
    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    return fsync


def test_a_kill_while_the_disk_is_waited_for_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(sorted(path.name for path in tmp_path.iterdir())))

    RunFolder.create("run", started=STARTED, out=tmp_path)
    write_whole(tmp_path / "record.json", b"{}")
    write_whole(tmp_path / "record.json", b"{1}")

    assert seen == [[], [], ["record.json"]]
    assert (tmp_path / "record.json").read_bytes() == b"{1}"
    assert (tmp_path / "record.json").stat().st_mode & 0o777 == 0o644


def test_a_file_system_without_nameless_files_gets_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refusing(path: Any, flags: int, *rest: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not here")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    write_whole(tmp_path / "record.json", b"{}")

    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert (tmp_path / "record.json").read_bytes() == b"{}"
