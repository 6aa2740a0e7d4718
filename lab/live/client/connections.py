"""The assistant's connections: attempts, the one in use, and those that were lost and are still open.

Attempts are numbered from 1 and each failure is told. A line that is lost stays as it is, its reader too, so that the
path's return is noticed; closing or aborting it is somebody's decision.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from lab.live.client.background import Background
from lab.live.client.events import Events
from lab.live.client.lines import Line, LineEars, Listener, Loss
from lab.live.client.link import Address, Ears, Failed, Link, Phase, Refused
from lab.live.clock import Clock
from lab.live.protocol.messages import Setup
from lab.live.recovery.liveness import Watchdog

ABANDONED = "abandoned"

ABANDON_S = 5.0
"""An abandoned attempt's close may take so long, seconds of the wall; then its socket is closed."""

LOOKS_KEPT = 100_000
"""A working day of the watchdogs' looks, which are a few a second."""


class Connections:
    """Makes lines and watches them.

    Args:
        dial: Makes a link.
        watchdog: Makes the watchdog of a line, at an instant of the wall.
        clock: Session time.
        events: Where everything is told.
        listener: Who acts.
    """

    def __init__(
        self,
        dial: Callable[[Ears], Link],
        watchdog: Callable[[float], Watchdog],
        clock: Clock,
        events: Events,
        listener: Listener,
    ) -> None:
        self._dial = dial
        self._watchdog = watchdog
        self._clock = clock
        self._events = events
        self._listener = listener
        self._background = Background(events)
        self._attempts: list[Line] = []
        self.lines: list[Line] = []
        """Every one that was adopted, oldest first."""

        self.lateness_s: deque[float] = deque(maxlen=LOOKS_KEPT)
        """How late the watchdogs woke, seconds of the wall."""

    @property
    def current(self) -> Line | None:
        """The latest adopted."""
        return self.lines[-1] if self.lines else None

    @property
    def live(self) -> Line | None:
        """The one in use, None after a loss."""
        return self.current if self.current is not None and self.current.live else None

    def lost(self) -> list[Line]:
        """Lost or left, and still open on this side."""
        return [each for each in self.lines if not each.live and not each.wanted_end and each.link.ending is None]

    async def attempt(self, setup: Setup, *, timeout_s: float, begun: Callable[[Line], None] | None = None) -> Line:
        """One attempt, from its beginning to the setup's answer; told with its outcome.

        Args:
            setup: The first message; its handle is the session to resume.
            timeout_s: Session seconds after which it has failed.
            begun: Given the line before anything happens on it; None: nobody is.

        Raises:
            Refused: the server said no.
            Failed: nothing usable came, or not in time.
        """
        handle = None if setup.session_resumption is None else setup.session_resumption.handle
        line = Line(len(self._attempts) + 1, handle, self._clock.now())
        line.link = self._dial(LineEars(line, self))
        self._attempts.append(line)
        if begun is not None:
            begun(line)
        self._events.tell("connecting", attempt=line.number, handle=handle)
        try:
            await self._within(line, setup, timeout_s)
        except Refused as error:
            if line.wanted_end:  # What came is the answer to this side's own close.
                self._tell_failure(line, ABANDONED)
                raise Failed(ABANDONED, error.phase) from error
            self._tell_outcome("refused", line, error.phase, code=error.code, reason=error.reason)
            raise
        except Failed as error:
            self._tell_failure(line, ABANDONED if line.wanted_end else error.why)
            raise
        except asyncio.CancelledError:
            self._tell_failure(line, ABANDONED)
            raise
        self._events.tell("setup_complete", attempt=line.number, took_s=self._took(line))
        return line

    def adopt(self, line: Line) -> None:
        """Use this line from now on."""
        line.heard_at = time.monotonic()
        line.watchdog = self._watchdog(line.heard_at)
        self.lines.append(line)
        self._background.start(self._pump(line))
        line.guard = self._background.start(self._guard(line))

    def reuse(self, line: Line) -> None:
        """Go on with a lost line whose path is back."""
        line.lost, line.path_back = None, False
        self.lines.remove(line)
        if line.guard is not None:
            line.guard.cancel()
        self.lines.append(line)
        line.watchdog = self._watchdog(time.monotonic())
        line.guard = self._background.start(self._guard(line))

    def close(self, line: Line, code: int) -> None:
        """Queue a close frame on a line; its end is then nobody's loss. On a dead path it never leaves."""
        line.wanted_end = True
        self._events.tell("close_old", attempt=line.number, code=code)
        line.link.close(code)

    def abandon(self, line: Line, code: int) -> None:
        """Be rid of a line that nobody waits for: by a close as soon as it carries one, else at once; never waits.

        The server may have taken the setup already, and would keep the connection attached.
        """
        line.wanted_end = True
        if line.link.phase in (Phase.SETUP, Phase.OPEN):
            line.link.close(code)
            asyncio.get_running_loop().call_later(ABANDON_S, line.link.abort)
        else:
            line.link.abort()

    def lose(self, line: Line, loss: Loss) -> None:
        """Tell the loss of a line in use, once."""
        if line.lost is None:
            line.lost = loss
            silent_s = round(loss.at - line.heard_at, 6)
            self._events.tell("lost", attempt=line.number, silent_s=silent_s, by=loss.by)
            self._listener.on_lost(line, loss)

    async def stop(self) -> None:
        """Abort what is open; for the end of a program or a test."""
        for line in self._attempts:
            line.wanted_end = True
            line.link.abort()
        await self._background.stop()

    def connected(self, line: Line, local: Address, remote: Address) -> None:
        """TCP stands."""
        self._events.tell("connected", attempt=line.number, local=list(local), remote=list(remote))

    def heard(self, line: Line, at: float) -> None:
        """Octets came on a line."""
        line.heard_at = at
        if line in self.lines:
            line.watchdog.frame(now=at)
        if line.lost is not None and not line.path_back:
            line.path_back = True
            self._events.tell("path_back", attempt=line.number)
            self._listener.on_path_back(line)

    def pong(self, line: Line, sent_at: float, at: float) -> None:
        """A pong came on a line."""
        if line in self.lines:
            line.watchdog.pong(sent_at, now=at)
            self._listener.on_pong(line, sent_at)

    async def _within(self, line: Line, setup: Setup, timeout_s: float) -> None:
        connecting = asyncio.get_running_loop().create_task(line.link.connect(setup))
        patience = asyncio.get_running_loop().create_task(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({connecting, patience}, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                raise Failed(f"no answer within {timeout_s:g} s", line.link.phase)
            connecting.result()
        finally:
            connecting.cancel()
            patience.cancel()
            await asyncio.gather(connecting, patience, return_exceptions=True)

    def _tell_failure(self, line: Line, why: str) -> None:
        self._tell_outcome("failed", line, line.link.phase, error=why)

    def _tell_outcome(self, event: str, line: Line, phase: Phase, **fields: Any) -> None:
        self._events.tell(event, attempt=line.number, **fields, took_s=self._took(line), phase=phase.value)

    def _took(self, line: Line) -> float:
        return round(self._clock.now() - line.began_t, 6)

    async def _pump(self, line: Line) -> None:
        async for message in line.link:
            self._listener.on_message(line, message)
        ending = line.link.ending
        assert ending is not None
        self._events.tell(
            "closed", attempt=line.number, code=ending.code, reason=ending.reason, by=ending.by, error=ending.error
        )
        if line is self.current and line.lost is None and not line.wanted_end:
            self.lose(line, Loss(time.monotonic(), "ended" if ending.code is None else "closed"))
        self._listener.on_ended(line, ending)

    async def _guard(self, line: Line) -> None:
        """The watchdog, by the wall: what it waits for is never hurried."""
        dog = line.watchdog
        while line.live:
            now = time.monotonic()
            dog.unacknowledged(line.link.unacknowledged(now))
            if dog.ping_due(now=now):
                line.link.ping()
                dog.pinged(now=now)
            if seen := dog.lost(now=now):
                self.lose(line, Loss(now, seen.by.value))
                return
            due_at = dog.next_at()
            await asyncio.sleep(max(due_at - now, 0.0))
            self.lateness_s.append(max(time.monotonic() - due_at, 0.0))
