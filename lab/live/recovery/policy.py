"""What is done after a loss: events in, commands out.

A pure machine: ``states.TABLE`` says how it moves, this module what goes with each move. It dials, it never waits;
``next_at`` is when it wants to be woken. Attempts are paced and bounded in number and time, every failure is reported,
and every loss ends in one of three ways: a connection is adopted, the user is told (``GiveUp``), or the user closed.
"""

from collections.abc import Callable
from functools import partial

from lab.live.recovery.attempts import Line
from lab.live.recovery.commands import (
    Abandon,
    Adopt,
    Command,
    Dial,
    Fact,
    GiveUp,
    Happening,
    Report,
    Restore,
)
from lab.live.recovery.old import OldConnections
from lab.live.recovery.options import Policy
from lab.live.recovery.states import RECOVERING, TABLE, Event, State

__all__ = ["DEAD_HANDLE_CODES", "Policy", "Recovery"]

DEAD_HANDLE_CODES = frozenset({1007, 1008})
"""Refusals of a resume that no further attempt mends: an argument the server cannot take, a session it does not know.
1011 is not among them: a refused attempt does not burn the handle."""

_ROUNDING_S = 1e-6
"""Sums of floats: four times 1.0 s after an odd instant is the window's end, not just before it."""


class Recovery:
    """One conversation's connections, from the first one to the close that the user wants.

    Every input returns commands, to be carried out in their order; ``now`` is session seconds and never goes back.
    Inputs that come too late (an answer to an abandoned attempt, a second loss of the same connection) change nothing.

    Args:
        policy: What is tried.
        handle: Of the first connection, where it is known already; else by ``issued``.
    """

    def __init__(self, policy: Policy | None = None, *, handle: str | None = None) -> None:
        self.policy = Policy() if policy is None else policy
        self.state = State.ATTACHED
        self.handle = handle
        """Names the session on the server; None: it cannot be resumed."""

        self.connection: int | None = 0
        """The attempt that is adopted; None while there is none."""

        self._resume, self._fresh = Line(self.policy.every_s), Line(self.policy.every_s)
        self._next_attempt = 1
        self._dialled = 0
        self._adopted_at: float | None = None
        self._lost_at = self._window_end = self._close_until = 0.0
        self._old = OldConnections()

    # What happens.

    def issued(self, handle: str | None, *, resumable: bool = True, attempt: int | None = None) -> None:
        """The server named the session anew; what it calls not resumable keeps the name that it had.

        Args:
            handle: The new name.
            resumable: As in the update.
            attempt: The connection that carried the update; None: the adopted one.
        """
        if handle and resumable and self.connection is not None and attempt in (None, self.connection):
            self.handle = handle

    def lost(
        self,
        *,
        now: float,
        attempt: int | None = None,
        gone: bool = False,
        restored: bool = True,
        by: str = "",
    ) -> list[Command]:
        """The connection is lost: the watchdog says so, its socket failed, or the server closed it.

        Args:
            now: Session seconds.
            attempt: Which one; None: the adopted one.
            gone: Its socket is closed or reset already: there is nothing left to close.
            restored: False: it was restored, and nothing came back after the history was sent. To resume it could mean
                to talk to a session that knows nothing.
            by: How it was noticed, for the report.
        """
        if attempt is not None and attempt != self.connection:
            return self.failed(attempt, by or "lost", now=now)
        if self.connection is None or self.state is not State.ATTACHED:
            return []
        old, self.connection = self.connection, None
        self.handle = self.handle if restored else None
        commands: list[Command] = [
            Report(Happening.LOST, {"attempt": old, "by": by, "handle": self.handle is not None}),
            *self._old.leave(old, gone=gone, close=self.policy.close_old),
        ]
        if self._adopted_at is None or now - self._adopted_at >= self.policy.settled_s:
            self._dialled = 0
        self._lost_at = now
        event = Event.LOST if self.handle is not None else Event.LOST_WITHOUT_HANDLE
        return commands + self._move(event, now, why="the session has no handle") + self.wake(now=now)

    def ready(self, attempt: int, *, now: float) -> list[Command]:
        """An attempt got its ``setupComplete``."""
        line = self._line_of(attempt)
        if line is None:
            if attempt == self.connection:
                return []
            return [Report(Happening.LATE, {"attempt": attempt}), Abandon(attempt)]
        resumed = line is self._resume
        line.stop()
        self.connection, self._adopted_at = attempt, now
        if not resumed:
            self.handle = None
        facts: dict[str, Fact] = {"attempt": attempt, "resumed": resumed, **self._so_far(now)}
        commands: list[Command] = [Adopt(attempt, resumed), Report(Happening.ADOPTED, facts)]
        if not resumed:
            commands.append(Restore(attempt, self.policy.note))
        return commands + self._move(Event.READY, now, why="another one was ready first")

    def refused(self, attempt: int, code: int, reason: str = "", *, now: float) -> list[Command]:
        """The server closed an attempt before it was ready.

        Args:
            attempt: Which one.
            code: The WebSocket close code, or the HTTP status that refused the upgrade.
            reason: As the server worded it.
            now: Session seconds.
        """
        line = self._line_of(attempt)
        if line is None:
            return []
        commands: list[Command] = [
            Report(Happening.REFUSED, {"code": code, "reason": reason, **self._of_attempt(line, now)})
        ]
        line.failed(now)
        if line is self._resume and code in DEAD_HANDLE_CODES:
            self.handle = None
            commands.append(Report(Happening.HANDLE_DEAD, {"attempt": attempt, "code": code}))
            commands += self._move(Event.HANDLE_DEAD, now, why=f"the handle is dead ({code} {reason})")
        return commands + self.wake(now=now)

    def failed(self, attempt: int, why: str, *, now: float) -> list[Command]:
        """An attempt came to nothing otherwise: no route, a reset, an error of the client's."""
        line = self._line_of(attempt)
        if line is None:
            return []
        report = Report(Happening.FAILED, {"why": why, **self._of_attempt(line, now)})
        line.failed(now)
        return [report, *self.wake(now=now)]

    def path_back(self, *, now: float, attempt: int | None = None) -> list[Command]:
        """Something came in on a lost connection: its path is back.

        Args:
            now: Session seconds.
            attempt: Which connection; None: the one lost last.
        """
        old = self._old.latest if attempt is None else attempt
        if old is None or not self._old.awaits_path(old):
            return []
        report = Report(Happening.PATH_BACK, {"attempt": old})
        latest = old == self._old.latest
        if latest and self.state is State.RESUMING and not self.policy.close_before_resume:
            return [report]
        return [report, *self._old.close_again(old), *(self._move(Event.PATH_BACK, now) if latest else [])]

    def old_closed(self, *, now: float, attempt: int | None = None, echoed: bool = True) -> list[Command]:
        """A connection that was adopted once is closed.

        Args:
            now: Session seconds.
            attempt: Which one; None: the one lost last.
            echoed: The server answered the close, so that it holds the session no longer; False: the socket was reset,
                aborted or timed out.
        """
        old = self._old.latest if attempt is None else attempt
        if old is None or not self._old.ended(old):
            return []
        report = Report(Happening.OLD_CLOSED, {"attempt": old, "echoed": echoed})
        moves = old == self._old.latest and (echoed or self.state is State.CLOSING)
        return [report, *(self._move(Event.OLD_CLOSED, now) if moves else []), *self.wake(now=now)]

    def close(self, *, now: float) -> list[Command]:
        """The user wants no more: everything is closed, and nothing is ever dialled again."""
        if self.state is State.CLOSED:
            return []
        current, self.connection = self.connection, None
        commands: list[Command] = [Report(Happening.CLOSED, {"attempt": current})]
        if current is not None:
            commands += self._old.leave(current, gone=False, close=True)
        return commands + self._move(Event.WANTED_CLOSE, now, why="the user closed")

    def wake(self, *, now: float) -> list[Command]:
        """Do what is due."""
        commands: list[Command] = []
        while (step := self._due(now)) is not None:
            commands += step()
        return commands

    def next_at(self) -> float | None:
        """When to be woken at the latest, session seconds; None: only an event changes anything."""
        if self.state not in RECOVERING:
            return None
        instants = [self._lost_at + self.policy.give_up_s]
        if self.state is State.RESUMING:
            instants.append(self._window_end)
        if self.state is State.CLOSING:
            instants.append(self._close_until)
        for line in self._lines():
            if line.attempt is not None:
                instants.append(line.began_at + self.policy.attempt_s)
            elif line.due_at is not None and self._may_dial(line):
                instants.append(line.due_at)
        return min(instants)

    # What is due.

    def _due(self, now: float) -> Callable[[], list[Command]] | None:
        """The next thing to be done by now."""
        if self.state not in RECOVERING:
            return None
        if now >= self._lost_at + self.policy.give_up_s:
            return partial(self._move, Event.NO_WAY_LEFT, now, why=f"no connection in {self.policy.give_up_s:g} s")
        if self.state is State.CLOSING and now >= self._close_until:
            return partial(self._move, Event.OLD_CLOSED, now)
        if self.state is State.RESUMING and self._window_is_over(now):
            return partial(self._move, Event.WINDOW_OVER, now, why="the window is over")
        for line in self._lines():
            if line.attempt is not None and now >= line.began_at + self.policy.attempt_s:
                return partial(self._time_out, line, line.attempt, now)
            if line.attempt is None and line.due_at is not None and now >= line.due_at and self._may_dial(line):
                return partial(self._dial, line, now)
        if self._dialled >= self.policy.max_attempts and all(line.attempt is None for line in self._lines()):
            return partial(self._move, Event.NO_WAY_LEFT, now, why=f"{self._dialled} attempts came to nothing")
        return None

    def _lines(self) -> tuple[Line, Line]:
        return self._resume, self._fresh

    def _line_of(self, attempt: int) -> Line | None:
        """The line on which an attempt is open."""
        return next((line for line in self._lines() if line.attempt == attempt), None)

    def _may_dial(self, line: Line) -> bool:
        """Whether the state and the number of attempts allow one more."""
        if line is self._fresh:
            return self._dialled < self.policy.max_attempts
        kept = 1 if self.policy.fallback else 0
        return self.state is State.RESUMING and self._dialled < self.policy.max_attempts - kept

    def _window_is_over(self, now: float) -> bool:
        """Whether its time is, or no attempt is open and none will start in it."""
        if now >= self._window_end - _ROUNDING_S:
            return True
        due_at = self._resume.due_at
        if self._resume.attempt is not None or due_at is None:
            return False
        return due_at >= self._window_end - _ROUNDING_S or not self._may_dial(self._resume)

    def _dial(self, line: Line, now: float) -> list[Command]:
        attempt, self._next_attempt = self._next_attempt, self._next_attempt + 1
        self._dialled += 1
        line.begin(attempt, now)
        return [Dial(attempt, self.handle if line is self._resume else None)]

    def _time_out(self, line: Line, attempt: int, now: float) -> list[Command]:
        report = Report(Happening.FAILED, {"why": "no answer", **self._of_attempt(line, now)})
        line.failed(now)
        return [report, Abandon(attempt)]

    # What goes with a move.

    def _move(self, event: Event, now: float, *, why: str = "") -> list[Command]:
        """Move by the table; an event that it does not name changes nothing."""
        if not self.policy.fallback and TABLE[self.state].get(event) is State.FALLING_BACK:
            event = Event.NO_WAY_LEFT
        before, after = self.state, TABLE[self.state].get(event)
        if after is None:
            return []
        self.state = after
        if after is State.RESUMING:
            return self._open_window(now) if before is State.ATTACHED else self._hold_window(now)
        if after is State.CLOSING:
            self._close_until = now + self.policy.close_wait_s
            return []
        if after is State.FALLING_BACK:
            return self._fall_back(now, why)
        commands = [
            *self._stop(self._resume, now, why),
            *self._stop(self._fresh, now, why),
            *self._old.close_the_rest(),
        ]
        if after is State.GIVEN_UP:
            commands += [Report(Happening.GIVEN_UP, {"why": why, **self._so_far(now)}), GiveUp(why)]
        return commands

    def _open_window(self, now: float) -> list[Command]:
        self._window_end = now + self.policy.window_s
        self._resume.plan(now)
        if self.policy.parallel and self.policy.fallback:
            self._fresh.plan(now)
        return []

    def _hold_window(self, now: float) -> list[Command]:
        """The old connection is out of the way: one attempt out of turn, and time for it."""
        self._freed = True
        self._window_end = max(self._window_end, now + self.policy.every_s)
        self._resume.plan_at_once(now)
        return []

    def _fall_back(self, now: float, why: str) -> list[Command]:
        commands = self._stop(self._resume, now, why)
        commands.append(Report(Happening.FALLBACK, {"why": why}))
        self._fresh.plan(now)
        return commands

    def _stop(self, line: Line, now: float, why: str) -> list[Command]:
        """No more of these; one that is open is closed."""
        facts = self._of_attempt(line, now)
        left = line.stop()
        return [] if left is None else [Report(Happening.ABANDONED, {"why": why, **facts}), Abandon(left)]

    def _of_attempt(self, line: Line, now: float) -> dict[str, Fact]:
        return {"attempt": line.attempt, "resume": line is self._resume, "took_s": now - line.began_at}

    def _so_far(self, now: float) -> dict[str, Fact]:
        return {"since_lost_s": now - self._lost_at, "attempts": self._dialled}
