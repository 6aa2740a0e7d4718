"""What goes on beside a host: a defect is told, unless who started it hears of it, and nobody has to wait for ever."""

import asyncio
from collections.abc import Awaitable

import pytest

from lab.host.shell.tasks import Tasks, each, heard
from tests.host.shell.leaping import play


async def fail() -> None:
    raise OSError("no disk")


def test_whatever_a_task_raises_is_told_once() -> None:
    async def scenario() -> None:
        tasks = Tasks()
        tasks.start(fail())
        await tasks.join()
        await asyncio.sleep(0)

    (defect,) = play(scenario)
    assert str(defect["exception"]) == "no disk"


def test_what_its_starter_hears_is_not_told_again() -> None:
    async def scenario() -> None:
        with pytest.raises(OSError, match="no disk"):
            await Tasks().start(fail(), heard=True)
        await asyncio.sleep(0)

    assert play(scenario) == []


def test_a_cancelled_task_is_no_defect_and_who_cancels_goes_on() -> None:
    async def scenario() -> None:
        tasks = Tasks()

        async def cancel() -> str:
            tasks.cancel()
            await tasks.join()
            return "all are over"

        sleeping = tasks.start(asyncio.sleep(1e6))
        assert await tasks.start(cancel()) == "all are over"
        assert sleeping.cancelled()

    assert play(scenario) == []


@pytest.mark.parametrize("raised", [RuntimeError("it broke"), asyncio.CancelledError("it broke")])
def test_somebody_elses_code_may_raise_anything(raised: BaseException) -> None:
    async def late() -> None:
        raise raised

    def at_once() -> Awaitable[None]:
        raise raised

    async def scenario() -> None:
        assert await heard(late) == (None, raised)
        assert await heard(at_once) == (None, raised)

    assert play(scenario) == []


def test_who_hears_it_can_be_cancelled_all_the_same() -> None:
    async def scenario() -> None:
        task = asyncio.ensure_future(heard(lambda: asyncio.sleep(1e6)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert play(scenario) == []


def test_all_of_them_are_done_whatever_that_raises_and_the_first_of_it_is_given() -> None:
    done: list[int] = []

    def do(item: int) -> None:
        done.append(item)
        if item:
            raise OSError(f"no disk {item}")

    assert each(do, [0, 0]) is None
    assert str(each(do, [0, 1, 2])) == "no disk 1"
    assert done == [0, 0, 0, 1, 2]


@pytest.mark.parametrize(("by", "waited_s"), [(None, 5.0), (2.0, 2.0), (0.0, 0.0)])
def test_a_join_waits_for_all_or_until_an_instant(by: float | None, waited_s: float) -> None:
    async def scenario() -> None:
        tasks = Tasks()
        tasks.start(asyncio.sleep(5.0))
        await tasks.join(by=by)
        assert asyncio.get_running_loop().time() == pytest.approx(waited_s)

    assert play(scenario) == []
