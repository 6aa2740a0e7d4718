"""What goes on beside a conversation: started, watched for defects, and ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from lab.live.client.events import Events


class Background:
    """Tasks of one owner. One that fails is a defect of this program: told, and its traceback shown.

    Args:
        events: Where a defect is told.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let something go on."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    async def stop(self) -> None:
        """End all of it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._events.tell("defect", error=f"{type(error).__name__}: {error}")
            context = {"message": "a defect of the assistant", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)
