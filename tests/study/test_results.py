import dataclasses
import json
from pathlib import Path

import pytest

from lab.core.errors import UsageError
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


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "R1.jsonl").write_text('{"scenario": "R1"}\n')

    with pytest.raises(UsageError, match=r"R1\.jsonl is no file of results"):
        Results(tmp_path).read()
