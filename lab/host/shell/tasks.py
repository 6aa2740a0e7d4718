"""What goes on beside a host or a job, started, watched for defects and ended; and what other people's code raises."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def heard(
    work: Callable[[], Awaitable[Result]],
) -> tuple[Result | None, Exception | asyncio.CancelledError | None]:
    """What somebody else's code gives, or what it raises, which may be anything: somebody waits for its answer.

    Raises:
        CancelledError: who awaits this is cancelled, and not something inside of that code.
    """
    try:
        return await work(), None
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, cancelled
    except Exception as raised:  # noqa: BLE001 -- see above
        return None, raised


def each(do: Callable[[Item], None], items: Iterable[Item]) -> Exception | None:
    """Do it with all of them, whatever it raises, whosever code that is; gives the first that was raised."""
    first: Exception | None = None
    for item in items:
        try:
            do(item)
        except Exception as raised:  # noqa: BLE001 -- see above
            first = first or raised
    return first


class Tasks:
    """Tasks of one owner. One that fails is a defect, and the loop's exception handler is told of it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result], *, heard: bool = False) -> "asyncio.Task[Result]":
        """Let something go on.

        Args:
            work: What.
            heard: Whether who started it hears of its failure, and nobody else has to.
        """
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if not heard:
            task.add_done_callback(self._tell)
        return task

    def cancel(self) -> None:
        """End all of it, but for who asks."""
        for task in self._others():
            task.cancel()

    async def join(self, *, by: float | None = None) -> None:
        """Wait until all of it is over, but for who waits.

        Args:
            by: The instant, seconds of the loop's clock, at which that ends; a task may ignore that it was cancelled.
                None for when it is over.
        """
        if tasks := self._others():
            await asyncio.wait(tasks, timeout=None if by is None else max(0.0, by - self._loop.time()))

    def _others(self) -> "set[asyncio.Task[Any]]":
        return self._running - {asyncio.current_task()}

    def _tell(self, task: "asyncio.Task[Any]") -> None:
        # What ends the program, the loop has raised already.
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            context = {"message": "a defect of a host's, a remote's or a job's", "exception": error, "task": task}
            self._loop.call_exception_handler(context)
