"""The booking backend: accepts at once, commits after a while of session time, and can fail in the ways one fails.

A job runs on whatever happens to the connection; who asked for it learns the end by a callback.
"""

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.live.client.background import Background
from lab.live.client.bookings import Booking, BookingError, Bookings
from lab.live.client.judging import Saying
from lab.live.clock import Clock
from lab.live.recovery.ledger import Job

COMMIT_AFTER_S = 4.0
"""study.md: the fake backend commits 4.0 s after the call, 7.0 s where the model is speaking."""


class Fault(enum.Enum):
    """What is wrong with the backend."""

    NONE = "none"
    FAIL = "fail"
    """Every commit is refused."""

    NEVER = "never"
    """It accepts and never commits."""

    FULL_DISK = "full-disk"
    """The bookings file can grow no further."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    job: Job
    booking: Booking | None
    """None where it failed."""

    error: str | None

    @property
    def response(self) -> Mapping[str, Any]:
        """What the tool answers."""
        if self.booking is None:
            return {"status": "failed", "error": self.error}
        return {"status": "booked", "slot": self.booking.slot, "confirmation_id": self.booking.confirmation_id}


@dataclass(slots=True)
class _Work:
    """One job's course, session time."""

    began_t: float
    ended_t: float = math.inf
    booked: bool = False

    def state(self, at: float) -> Saying:
        if at < self.began_t:
            return Saying.NOTHING
        if at < self.ended_t:
            return Saying.IN_PROGRESS
        return Saying.BOOKED if self.booked else Saying.FAILED


class Backend:
    """Runs jobs.

    Args:
        bookings: Where they are committed.
        clock: Session time.
        background: Where its jobs run.
        ended: Told how each job ended.
        commit_after_s: From the call to the commit, session seconds.
        fault: What is wrong with it.
    """

    def __init__(
        self,
        bookings: Bookings,
        clock: Clock,
        background: Background,
        ended: Callable[[Outcome], None],
        *,
        commit_after_s: float = COMMIT_AFTER_S,
        fault: Fault = Fault.NONE,
    ) -> None:
        self._bookings = bookings
        self._clock = clock
        self._ended = ended
        self._commit_after_s = commit_after_s
        self._fault = fault
        self._works: dict[int, _Work] = {}
        self._background = background
        if fault is Fault.FULL_DISK:
            bookings.fill_disk()

    def start(self, job: Job) -> None:
        """Accept a job; it is committed later."""
        work = self._works[job.number] = _Work(self._clock.now())
        if self._fault is not Fault.NEVER:
            self._background.start(self._run(job, work))

    def truth(self, at: float) -> Saying:
        """What a truthful answer to "Did you book it?" said at an instant of session time."""
        states = {work.state(at) for work in self._works.values()}
        order = (Saying.BOOKED, Saying.IN_PROGRESS, Saying.FAILED)
        return next((each for each in order if each in states), Saying.NOTHING)

    def committed_t(self) -> float | None:
        """When the first booking was committed, session time."""
        return min((work.ended_t for work in self._works.values() if work.booked), default=None)

    async def stop(self) -> None:
        """Forget what is not committed yet."""
        await self._background.stop()

    async def _run(self, job: Job, work: _Work) -> None:
        await self._clock.sleep_until(work.began_t + self._commit_after_s)
        outcome = self._book(job)
        work.ended_t, work.booked = self._clock.now(), outcome.booking is not None
        self._ended(outcome)

    def _book(self, job: Job) -> Outcome:
        if self._fault is Fault.FAIL:
            return Outcome(job, None, "The backend refuses every booking.")
        try:
            slot, call_id = str(job.args["slot"]), job.call_id or ""
            booking = self._bookings.commit(slot, key=job.key, call_id=call_id, now=self._clock.now())
        except BookingError as error:
            return Outcome(job, None, error.message)
        return Outcome(job, booking, None)
