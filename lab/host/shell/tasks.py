"""What goes on beside a host or a job: started, watched for defects, and ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Tasks:
    """Tasks of one owner. One that fails is a defect of the lab, and the loop's exception handler is told of it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> "asyncio.Task[Result]":
        """Let something go on."""
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._over)
        return task

    async def join(self, *, cancel: bool = False) -> None:
        """Wait until all of it is over, but for who waits.

        Args:
            cancel: End it now.
        """
        tasks = self._running - {asyncio.current_task()}
        if cancel:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, OSError):
            context = {"message": "a defect of a host's or a job's", "exception": error, "task": task}
            self._loop.call_exception_handler(context)
