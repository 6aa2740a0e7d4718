import dataclasses
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, InvalidRun
from lab.study.judgement import Session
from lab.study.matrix import TRIES_AGAIN, Matrix, Progress, Task, plan
from lab.study.results import Results
from lab.study.scenarios import PUBLISHED, SCENARIOS, find
from tests.study.streams import br1, r1

BR1 = find("BR1")
TIMEOUT_S = 10


def performer(act: Callable[[Task, Path], Session]) -> Callable[..., Session]:
    def perform(task: Task, *, out: Path, gate: AbstractContextManager[object], stop: threading.Event) -> Session:
        assert not stop.is_set()
        with gate:
            return act(task, out)

    return perform


def good(task: Task, _: Path) -> Session:
    return br1().session(task.scenario.id, task.number, real=task.real)


def test_the_longest_sessions_are_started_first() -> None:
    tasks = plan(PUBLISHED)

    assert len(tasks) == 43
    assert [task.longest_s for task in tasks] == sorted((task.longest_s for task in tasks), reverse=True)
    assert tasks[0].scenario.id in ("B1", "B2")


def test_real_waits_leave_out_the_quarters_of_an_hour_unless_all_is_wanted() -> None:
    real = {task.scenario.id for task in plan(PUBLISHED, real=True) if task.real}

    assert {task.scenario.id for task in plan(PUBLISHED, real=True)} - real == {"P4", "B1", "B2"}
    assert all(task.real for task in plan(PUBLISHED, full=True))
    assert not any(task.real for task in plan(PUBLISHED))
    assert max(task.longest_s for task in plan(PUBLISHED, real=True)) <= 180


def test_hundreds_of_sessions_are_run_when_they_are_asked_for() -> None:
    many = find("BR1-many")

    assert [len(plan([many])), len(plan([many], full=True)), len(plan([many], n=300))] == [10, 200, 300]


def test_all_sessions_are_run_judged_and_on_the_disk(tmp_path: Path) -> None:
    told: list[Progress] = []
    matrix = Matrix(plan([BR1], n=5), performer(good), tmp_path, jobs=3, tell=told.append).start()
    (row,) = matrix.rows()
    matrix.close()

    assert row.in_range is True
    assert [each.number for each in row.sessions] == [0, 1, 2, 3, 4]
    assert sorted(each.number for each in Results(tmp_path / "results").read()) == [0, 1, 2, 3, 4]
    assert [(each.done, each.total) for each in told] == [(k, 5) for k in range(1, 6)]


def test_an_invalid_session_is_run_again_in_a_folder_of_its_own_and_counted(tmp_path: Path) -> None:
    folders: list[str] = []

    def act(task: Task, out: Path) -> Session:
        folders.append(out.name)
        session = good(task, out)
        return session if len(folders) > 1 else dataclasses.replace(session, invalid=("the bystander noticed",))

    matrix = Matrix(plan([BR1], n=1), performer(act), tmp_path).start()
    row = matrix.row(BR1)
    matrix.close()

    assert folders == ["BR1-1", "BR1-1-again1"]
    assert row.sessions[0].again == ("the bystander noticed",)
    assert row.in_range is True


def test_a_session_that_never_proves_itself_stays_invalid(tmp_path: Path) -> None:
    tries: list[Task] = []

    def act(task: Task, _: Path) -> Session:
        tries.append(task)
        raise InvalidRun("The router lost its rules.")

    matrix = Matrix(plan([BR1], n=1), performer(act), tmp_path).start()
    row = matrix.row(BR1)
    matrix.close()

    assert len(tries) == 1 + TRIES_AGAIN
    assert row.in_range is False
    assert row.sessions[0].invalid == ("The router lost its rules.",)
    assert len(Results(tmp_path / "results").read()) == 1


def test_what_the_machine_is_not_to_blame_for_is_not_run_again(tmp_path: Path) -> None:
    tries: list[int] = []

    def act(task: Task, out: Path) -> Session:
        tries.append(task.number)
        spoilt: dict[int, dict[str, Any]] = {
            0: {"invalid": ("the server ended with status 1",), "disturbed": False},
            1: {"defect": "the server met a defect: KeyError"},
            2: {"values": {}},
        }
        return dataclasses.replace(good(task, out), **spoilt[task.number])

    matrix = Matrix(plan([BR1], n=3), performer(act), tmp_path).start()
    row = matrix.row(BR1)
    matrix.close()

    assert sorted(tries) == [0, 1, 2]
    assert not any(each.again for each in row.sessions)
    assert not row.passed
    assert "session 2: the server met a defect: KeyError" in row.problems


def test_what_cannot_run_here_at_all_is_said_and_not_tried_again(tmp_path: Path) -> None:
    def act(task: Task, _: Path) -> Session:
        raise EnvironmentNotReady(f"No namespaces for {task.name}.", fix="be root")

    matrix = Matrix(plan([BR1], n=1), performer(act), tmp_path).start()
    with pytest.raises(EnvironmentNotReady, match="No namespaces"):
        matrix.row(BR1)
    matrix.close()


def test_an_interrupted_matrix_has_what_was_over_and_starts_no_more(tmp_path: Path) -> None:
    over, begun = threading.Event(), threading.Semaphore(0)

    def perform(task: Task, *, out: Path, gate: AbstractContextManager[object], stop: threading.Event) -> Session:
        if task.number == 0:
            return good(task, out)
        with gate:
            begun.release()
        assert stop.wait(TIMEOUT_S), "told to end"
        return dataclasses.replace(good(task, out), invalid=("the run was asked to end early",))

    def tell(progress: Progress) -> None:
        if progress.done == 1:
            over.set()

    matrix = Matrix(plan([BR1], n=4), perform, tmp_path, jobs=2, tell=tell).start()
    assert over.wait(TIMEOUT_S)
    assert begun.acquire(timeout=TIMEOUT_S)
    matrix.close()

    assert 0 in {each.number for each in matrix.finished() if each.valid}
    assert {each.number for each in Results(tmp_path / "results").read() if each.valid} == {0}
    assert 3 not in {each.number for each in matrix.finished()}


def test_rows_come_in_the_order_of_the_study_s_table(tmp_path: Path) -> None:
    chosen = [find(name) for name in ("BR1", "R3", "R1", "N3")]

    def act(task: Task, _: Path) -> Session:
        return r1().session(task.scenario.id, task.number)

    matrix = Matrix(plan(chosen), performer(act), tmp_path).start()
    order = [row.scenario.id for row in matrix.rows()]
    matrix.close()

    assert order == sorted(order, key=list(SCENARIOS).index)


def test_no_session_s_arithmetic_keeps_another_s_cut_waiting_for_long(tmp_path: Path) -> None:
    before, during = sys.getswitchinterval(), list[float]()

    def act(task: Task, out: Path) -> Session:
        during.append(sys.getswitchinterval())
        return good(task, out)

    matrix = Matrix(plan([BR1], n=1), performer(act), tmp_path).start()
    matrix.rows()
    matrix.close()

    assert during == [pytest.approx(0.001)]
    assert sys.getswitchinterval() == before
