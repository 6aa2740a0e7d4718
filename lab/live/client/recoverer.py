"""Carries out what the recovery policy decides, on the assistant's connections."""

import asyncio
import math
from collections.abc import Mapping
from typing import Protocol

from lab.live.client.background import Background
from lab.live.client.connections import Connections
from lab.live.client.events import Events
from lab.live.client.lines import Line
from lab.live.client.link import Ending, Failed, Refused
from lab.live.clock import Clock
from lab.live.protocol.messages import Setup
from lab.live.recovery.commands import (
    Abandon,
    Adopt,
    CloseOld,
    Command,
    Dial,
    Fact,
    GiveUp,
    Happening,
    Report,
    Restore,
)
from lab.live.recovery.policy import Policy, Recovery
from lab.live.recovery.states import RECOVERING

TOLD_ELSEWHERE = {Happening.LOST, Happening.REFUSED, Happening.FAILED, Happening.ADOPTED, Happening.GIVEN_UP,
                  Happening.PATH_BACK, Happening.CLOSED}  # fmt: skip
"""Reports whose facts an event of the assistant's own says already."""


NAMES = {Happening.FALLBACK: "falling_back"}
"""Events of reports; ``fallback`` is the new session in use."""


class Conversant(Protocol):
    """What the policy needs of the assistant."""

    def setup(self, handle: str | None) -> Setup:
        """The first message of a connection."""

    def use(self, line: Line, *, resumed: bool) -> None:
        """Go on here."""

    def restore(self, line: Line, *, note: bool) -> None:
        """Tell a new session what was said."""


class Recoverer:
    """Drives one ``Recovery``, from a conversation's first connection to its last.

    Args:
        policy: What is tried.
        connections: Where.
        clock: Session time, in which the policy counts.
        events: Where it is told.
        conversant: The assistant.
    """

    def __init__(
        self, policy: Policy, connections: Connections, clock: Clock, events: Events, conversant: Conversant
    ) -> None:
        self._policy = policy
        self._connections = connections
        self._clock = clock
        self._events = events
        self._conversant = conversant
        self._machine = Recovery(policy)
        self._lines: dict[int, Line] = {}
        self._background = Background(events)
        self._changed = asyncio.Event()
        self._closed = False

    async def recover(self, handle: str | None, *, restored: bool) -> bool:
        """Meet the loss of the connection in use; whether another one was adopted.

        Args:
            handle: What the session is known by; None: it cannot be resumed.
            restored: False: nothing came back since a history was sent on it.
        """
        line = self._follow()
        self._machine.handle = handle
        gone = line is None or line.link.ending is not None or line.wanted_end
        self._obey(self._machine.lost(now=self._clock.now(), gone=gone, restored=restored, by=_by(line)))
        await self._drive()
        return self._machine.connection is not None

    def issued(self, line: Line, handle: str | None, *, resumable: bool) -> None:
        """The server named the session anew on a line."""
        if (number := self._number(line)) is not None:
            self._machine.issued(handle, resumable=resumable, attempt=number)

    def path_back(self, line: Line) -> None:
        """A lost line carries traffic again."""
        if (number := self._number(line)) is not None:
            self._obey(self._machine.path_back(now=self._clock.now(), attempt=number))

    def ended(self, line: Line, ending: Ending) -> None:
        """A line is over."""
        if (number := self._number(line)) is not None:
            echoed = ending.code is not None
            self._obey(self._machine.old_closed(now=self._clock.now(), attempt=number, echoed=echoed))

    def close(self) -> None:
        """The user wants no more: what is open is closed, and nothing is dialled after it."""
        self._follow()
        self._closed = True
        self._obey(self._machine.close(now=self._clock.now()))

    async def stop(self) -> None:
        """End what is in the background."""
        await self._background.stop()

    def _follow(self) -> Line | None:
        """The line in use, as the machine's connection; a script may have adopted it by itself."""
        line = self._connections.current
        known = None if self._machine.connection is None else self._lines.get(self._machine.connection)
        if not self._closed and line is not None and known is not line:
            self._machine, self._lines = Recovery(self._policy), {0: line}
        return line

    async def _drive(self) -> None:
        while self._machine.state in RECOVERING:
            self._changed.clear()
            changed = asyncio.get_running_loop().create_task(self._changed.wait())
            at = self._machine.next_at()
            due = asyncio.get_running_loop().create_task(self._clock.sleep_until(math.inf if at is None else at))
            try:
                await asyncio.wait({changed, due}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                due.cancel()
            self._obey(self._machine.wake(now=self._clock.now()))

    def _number(self, line: Line) -> int | None:
        return next((number for number, each in self._lines.items() if each is line), None)

    def _obey(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Dial(attempt, handle):
                    self._begin(attempt, handle)
                case Abandon(attempt, code):
                    self._connections.abandon(self._lines[attempt], code)
                case CloseOld(attempt, code):
                    self._connections.close(self._lines[attempt], code)
                case Adopt(attempt, resumed):
                    self._conversant.use(self._lines[attempt], resumed=resumed)
                case Restore(attempt, note):
                    self._conversant.restore(self._lines[attempt], note=note)
                case GiveUp(reason):
                    self._events.tell("given_up", reason=reason)
                case Report(event, fields):
                    if event not in TOLD_ELSEWHERE:
                        self._events.tell(NAMES.get(event, event.value.replace("-", "_")), **self._renumbered(fields))
        self._changed.set()

    def _begin(self, attempt: int, handle: str | None) -> None:
        self._background.start(self._dial(attempt, handle))

    async def _dial(self, attempt: int, handle: str | None) -> None:
        try:
            await self._connections.attempt(
                self._conversant.setup(handle),
                timeout_s=math.inf,
                begun=lambda line: self._lines.update({attempt: line}),
            )
            commands = self._machine.ready(attempt, now=self._clock.now())
        except Refused as error:
            commands = self._machine.refused(attempt, error.code, error.reason, now=self._clock.now())
        except Failed as error:
            commands = self._machine.failed(attempt, error.why, now=self._clock.now())
        self._obey(commands)

    def _renumbered(self, fields: Mapping[str, Fact]) -> dict[str, Fact]:
        """With the assistant's numbers for attempts instead of the policy's."""
        changed = dict(fields)
        if isinstance(number := changed.get("attempt"), int) and number in self._lines:
            changed["attempt"] = self._lines[number].number
        return changed


def _by(line: Line | None) -> str:
    return "" if line is None or line.lost is None else line.lost.by
