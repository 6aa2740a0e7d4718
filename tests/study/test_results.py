import dataclasses
import errno
import json
import math
import os
from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.study.results import Results, as_json, from_json
from tests.study.streams import b1, br1


def test_a_session_comes_back_as_it_was_written() -> None:
    session = br1().session("BR1", 2, again=("the bystander lost a packet",), took_s=17.25, folder="BR1-3-again1")

    back = from_json(json.loads(json.dumps(as_json(session))))
    rounded = {each: tuple(round(value, 6) for value in seen) for each, seen in session.values.items()}
    assert back == dataclasses.replace(session, values=rounded)


def test_each_scenario_has_a_file_with_a_line_per_session(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    for number in range(3):
        results.add(br1().session("BR1", number))
    results.add(b1().session("B1"))

    assert sorted(path.name for path in results.folder.iterdir()) == ["B1.jsonl", "BR1.jsonl"]
    assert [(each.scenario, each.number) for each in results.read()] == [("B1", 0), ("BR1", 0), ("BR1", 1), ("BR1", 2)]


def test_what_is_in_the_folder_stays_and_a_line_that_was_cut_short_is_no_session(tmp_path: Path) -> None:
    Results(tmp_path).add(br1().session("BR1", 0))
    with (tmp_path / "BR1.jsonl").open("a") as file:
        file.write('{"scenario": "BR1", "numb')

    assert [each.number for each in Results(tmp_path).read()] == [0]


GOOD = as_json(br1().session("BR1"))


@pytest.mark.parametrize(
    "line",
    [
        b'{"scenario": "BR1"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"",
        *(
            json.dumps(GOOD | {field: value}).encode()
            for field, value in [
                ("number", "0"),
                ("number", -1),
                ("number", True),
                ("real", 1),
                ("invalid", "abc"),
                ("again", [1]),
                ("stuck", 4),
                ("values", {"refused": 4}),
                ("values", {"refused": ["4"]}),
                ("values", {"refused": [math.nan]}),
                ("values", {"refused": [math.inf]}),
                ("values", {"nothing": [4]}),
                ("another", 1),
            ]
        ),
    ],
)
def test_a_file_that_is_no_result_is_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "BR1.jsonl").write_bytes(line + b"\n")

    with pytest.raises(UsageError, match=r"BR1\.jsonl is no file of results"):
        Results(tmp_path).read()


def test_results_of_a_version_that_had_fewer_fields_are_read() -> None:
    written = {name: value for name, value in GOOD.items() if name not in ("disturbed", "defect")}

    assert from_json(written) == from_json(GOOD)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "BR1.jsonl").mkdir()

    with pytest.raises(UsageError, match=r"BR1\.jsonl is no file of results"):
        Results(tmp_path).read()


def test_whatever_a_program_said_stays_within_its_line(tmp_path: Path) -> None:
    said = dataclasses.replace(br1().session("BR1"), stuck="one\u2028two\x85three\nfour\ud800")
    Results(tmp_path).add(said)

    assert [each.stuck for each in Results(tmp_path).read()] == [said.stuck]


def test_a_disk_that_is_full_costs_the_session_and_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, write = Results(tmp_path), os.write
    results.add(br1().session("BR1", 0))
    room = [100]

    def full(descriptor: int, octets: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, octets[: room.pop()])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(EnvironmentNotReady, match="No space left"):
            results.add(br1().session("BR1", 1))
    results.add(br1().session("BR1", 2))

    assert [each.number for each in results.read()] == [0, 2]
