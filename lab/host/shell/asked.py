"""Requests that sessions are asked, and their code that answers, which may not end when it is told to."""

import asyncio
from collections.abc import Callable

from lab.host.protocol.messages import Answer, Ask
from lab.host.shell.session import Session
from lab.host.shell.tasks import Tasks, heard


class Asked:
    """The requests of one host that sessions have.

    Args:
        answered: Takes the request, the answer or None, and what went wrong, once for each that was not forgotten.
    """

    def __init__(self, answered: Callable[[str, Answer | None, str | None], None]) -> None:
        self._answered = answered
        self._tasks = Tasks()
        self._answering: dict[str, asyncio.Task[None]] = {}

    def ask(self, session: Session, request: str, ask: Ask) -> None:
        """Let a session answer."""
        self._answering[request] = self._tasks.start(self._ask(session, request, ask))

    def forget(self, request: str) -> None:
        """Stop the code that answers, if there is any; what it says all the same is nobody's."""
        task = self._answering.pop(request, None)
        if task is not None:
            task.cancel()

    async def join(self, *, by: float | None) -> None:
        """Wait until all of it is over, until an instant."""
        await self._tasks.join(by=by)

    async def _ask(self, session: Session, request: str, ask: Ask) -> None:
        answer, raised = await heard(lambda: session.answer(ask))
        if self._answering.get(request) is asyncio.current_task():
            del self._answering[request]
            self._answered(request, answer, None if raised is None else str(raised) or type(raised).__name__)
