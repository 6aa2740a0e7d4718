"""What the model asked for and what became of it, across connections and sessions.

A *call* is one id of one session; a *job* is the work in the world that it stands for. The same id runs once. A call
with another id that means the same (its business key) is answered from the job that there is, whether it runs still or
has finished. A result is sent once on a connection that lives; one that went out just before a loss, so that nothing
shows that it arrived, is due again once the session is resumed. A new session never gets a result for an old id.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lab.live.protocol.messages import FunctionCall, FunctionResponse, Json
from lab.live.recovery.businesskey import normalise

DEDUPE_WITHIN_S = 600.0
"""A finished job answers a call of the same key for so long after its end (study)."""

NOTE_WITHIN_S = 300.0
"""A finished job is named in a status note for so long after its end (study)."""


class Progress(enum.Enum):
    """How far a job is."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    """Nothing was changed in the world: a call of the same key may try again."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work in the world, to be done once."""

    number: int
    """From 1, in the order of their beginning."""

    key: str
    """See ``businesskey``."""

    call_id: str | None
    """Of the call that began it."""

    name: str
    args: Json
    began_at: float
    progress: Progress = Progress.PENDING
    finished_at: float | None = None
    response: Json = field(default_factory=dict)
    """The backend's, once there is one."""


@dataclass(slots=True)
class _Call:
    """One id of one session."""

    id: str | None
    name: str
    job: int
    duplicate_of: str | None
    """The id that began the job, where this is another one."""

    asked_on: int
    """The connection on which it was asked last."""

    sent_at: float | None = None
    sure: bool = False
    """Something came back after it was sent: it arrived."""

    wanted: bool = True


class Ledger:
    """The calls of one conversation.

    Args:
        dedupe: Off, a call with a new id is a new job, whatever it means: the labelled wrong example.
        within_s: How long a finished job answers calls of its key, seconds.
        note_within_s: How long it is named in a note, seconds.
    """

    def __init__(
        self, *, dedupe: bool = True, within_s: float = DEDUPE_WITHIN_S, note_within_s: float = NOTE_WITHIN_S
    ) -> None:
        self._dedupe, self._within_s, self._note_within_s = dedupe, within_s, note_within_s
        self._jobs: dict[int, Job] = {}
        self._calls: list[_Call] = []
        """Those of the present session, in the order in which they came."""

        self._live = True
        self._connection = 0
        self._promised: dict[int, float | None] = {}
        """Jobs that a note called pending, or whose call was cancelled, and whose end the model may not know; with the
        instant at which an update note told it."""

    # What the model asks.

    def called(self, call: FunctionCall, *, now: float) -> Job | None:
        """The job to be done for a call; None if it is known already, or its meaning is.

        An id that is asked again on a later connection is answered again there: the server lacks its result.
        """
        known = next((each for each in self._calls if call.id is not None and each.id == call.id), None)
        if known is not None:
            if known.asked_on != self._connection:
                known.asked_on, known.sent_at, known.sure, known.wanted = self._connection, None, False, True
            return None
        key = normalise(call.name, call.args)
        same = self._same(key, now)
        job = same or Job(len(self._jobs) + 1, key, call.id, call.name, call.args, now)
        self._jobs[job.number] = job
        duplicate_of = None if same is None else same.call_id
        self._calls.append(_Call(call.id, call.name, job.number, duplicate_of, self._connection))
        return job if same is None else None

    def cancelled(self, ids: Iterable[str]) -> None:
        """The model wants no response to these; what has begun goes on, and answers whoever asks again.

        A model that was interrupted believes that it stopped. How the work ends is told in an update note.
        """
        unwanted = frozenset(ids)
        for call in self._calls:
            if call.id in unwanted:
                call.wanted = False
                self._promised[call.job] = None

    # What the backend does.

    def finished(self, number: int, response: Mapping[str, Any], *, now: float, failed: bool = False) -> Job:
        """A job has ended; only its first end counts.

        Args:
            number: The job's.
            response: What the tool answers.
            now: Session seconds.
            failed: Nothing was changed in the world.

        Raises:
            KeyError: no job has that number.
        """
        job = self._jobs[number]
        if job.progress is Progress.PENDING:
            progress = Progress.FAILED if failed else Progress.DONE
            job = replace(job, progress=progress, finished_at=now, response=dict(response))
            self._jobs[number] = job
        return job

    # What goes to the model.

    def due(self) -> tuple[FunctionResponse, ...]:
        """The results that await sending, in the order of their calls; none while no connection lives."""
        return tuple(self._response(call) for call in self._due())

    def take(self, *, now: float) -> tuple[FunctionResponse, ...]:
        """The same, to be written to the adopted connection now: they count as sent."""
        taken = self._due()
        for call in taken:
            # A call that the server repeats while its result is on the way is not asked anew.
            call.sent_at, call.asked_on = now, self._connection
        return tuple(self._response(call) for call in taken)

    def heard(self, sent_at: float) -> None:
        """The pong of a ping came: whatever was written before that ping has arrived.

        Args:
            sent_at: When the ping was sent, on the clock of the other instants.
        """
        for call in self._calls:
            call.sure = call.sure or (call.sent_at is not None and call.sent_at <= sent_at)
        self._promised = {
            number: told_at for number, told_at in self._promised.items() if told_at is None or told_at > sent_at
        }

    def lost(self) -> None:
        """The connection is lost; what may not have arrived is due again, should the session be resumed."""
        self._live = False
        self._promised = dict.fromkeys(self._promised)
        for call in self._calls:
            if not call.sure:
                call.sent_at = None

    def adopted(self, *, resumed: bool) -> None:
        """A connection is adopted.

        Args:
            resumed: The session goes on; else it is a new one, and the old ids are never answered.
        """
        self._live = True
        self._connection += 1
        if not resumed:
            self._calls.clear()
            self._promised.clear()

    # What a restored session is told.

    def effects(self, *, now: float) -> tuple[Job, ...]:
        """For the status note: jobs that are pending, or ended lately; in the order of their beginning."""
        return tuple(
            job
            for job in self._jobs.values()
            if job.finished_at is None or now - job.finished_at <= self._note_within_s
        )

    def noted(self, jobs: Iterable[Job]) -> None:
        """A note with these was sent: the model waits for the end of those that it called pending."""
        self._promised.update({job.number: None for job in jobs if job.progress is Progress.PENDING})

    def updates(self) -> tuple[Job, ...]:
        """Jobs whose end the model is owed, for an update note once it is idle.

        They had not ended when a note told of them, or when their call was cancelled. Left out are those for which a
        call of this session awaits the result, or has it: the model learns it there.
        """
        if not self._live:
            return ()
        asked = {call.job for call in self._calls if call.wanted}
        ended = [self._jobs[number] for number, told_at in self._promised.items() if told_at is None]
        return tuple(job for job in ended if job.progress is not Progress.PENDING and job.number not in asked)

    def told(self, jobs: Iterable[Job], *, now: float) -> None:
        """An update note with these was sent."""
        self._promised.update({job.number: now for job in jobs if job.number in self._promised})

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All, in the order of their beginning."""
        return tuple(self._jobs.values())

    def _same(self, key: str, now: float) -> Job | None:
        """The latest job of that meaning which answers for it."""
        if not self._dedupe:
            return None
        return next((job for job in reversed(self._jobs.values()) if job.key == key and self._answers(job, now)), None)

    def _answers(self, job: Job, now: float) -> bool:
        """Whether a job stands for a new call of its key: while it runs, and for a time after it was done."""
        if job.progress is Progress.DONE and job.finished_at is not None:
            return now - job.finished_at <= self._within_s
        return job.progress is Progress.PENDING

    def _due(self) -> list[_Call]:
        return [
            call
            for call in self._calls
            if self._live and call.wanted and call.sent_at is None
            if self._jobs[call.job].progress is not Progress.PENDING
        ]

    def _response(self, call: _Call) -> FunctionResponse:
        response = dict(self._jobs[call.job].response)
        if call.duplicate_of is not None:
            response["duplicate_of"] = call.duplicate_of
        return FunctionResponse(call.id, call.name, response)
