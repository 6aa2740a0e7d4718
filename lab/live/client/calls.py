"""Calls of the model's, their work, and their results on the way back."""

from collections.abc import Callable

from lab.live.client.backend import Backend, Outcome
from lab.live.client.background import Background
from lab.live.client.bookings import Bookings
from lab.live.client.events import Events
from lab.live.client.lines import Line
from lab.live.client.opening import BOOK_SLOT
from lab.live.client.options import Options
from lab.live.clock import Clock
from lab.live.protocol.messages import (
    FunctionCall,
    FunctionResponse,
    ToolCall,
    ToolCallCancellation,
    ToolResponse,
)
from lab.live.recovery.businesskey import normalise
from lab.live.recovery.ledger import Ledger


class Calls:
    """Runs what the model asks for, once, and answers on whatever connection there is.

    Args:
        options: The backend's.
        bookings: The ground truth.
        clock: Session time.
        events: Where it is told.
        live: The line in use, None after a loss.
    """

    def __init__(
        self, options: Options, bookings: Bookings, clock: Clock, events: Events, live: Callable[[], Line | None]
    ) -> None:
        self._bookings = bookings
        self._clock = clock
        self._events = events
        self._live = live
        self.hold = False
        """Results are kept back."""

        self.ledger = Ledger(dedupe=options.policy.dedupe)
        self.backend = Backend(
            bookings, clock, Background(events), self._ended, commit_after_s=options.commit_after_s, fault=options.fault
        )
        self.on_ended: list[Callable[[], None]] = []
        """Told when a job has ended and its result, if it could be, was sent."""

    def called(self, asked: ToolCall, attempt: int) -> None:
        """The model wants tools called."""
        for call in asked.function_calls:
            self._events.tell("tool_call", id=call.id, name=call.name, args=dict(call.args), attempt=attempt)
            earlier = {job.number for job in self.ledger.jobs}
            job = self.ledger.called(call, now=self._clock.now())
            if job is None or job.number in earlier:
                self._tell_known(call)
            elif call.name != BOOK_SLOT["name"] or not isinstance(call.args.get("slot"), str):
                self.ledger.finished(
                    job.number,
                    {"error": f"No tool {call.name} with these arguments."},
                    now=self._clock.now(),
                    failed=True,
                )
            else:
                self.backend.start(job)
        self.flush()

    def cancelled(self, asked: ToolCallCancellation) -> None:
        """The model wants no response to some."""
        self._events.tell("cancelled", ids=list(asked.ids))
        self.ledger.cancelled(asked.ids)

    def flush(self) -> None:
        """Send what is due, where there is a line and nothing is held back."""
        line = self._live()
        if self.hold or line is None:
            return
        for response in self.ledger.take(now=self._clock.now()):
            line.link.send(ToolResponse((response,)), self._written(response, line))

    def lost(self) -> None:
        """The line in use is lost."""
        self.ledger.lost()

    def account(self) -> None:
        """Say the bookings and the ledger."""
        rows = [
            {"confirmation_id": row.confirmation_id, "slot": row.slot, "key": row.key, "call_id": row.call_id,
             "committed_t": row.committed_at}
            for row in self._bookings.rows()
        ]  # fmt: skip
        self._events.tell("bookings", count=self._bookings.count(), rows=rows)
        jobs = [{"key": job.key, "call_id": job.call_id, "progress": job.progress.value} for job in self.ledger.jobs]
        self._events.tell("ledger", jobs=jobs, due=[response.id for response in self.ledger.due()])

    def _written(self, response: FunctionResponse, line: Line) -> Callable[[], None]:
        def written() -> None:
            self._events.tell("result_sent", id=response.id, attempt=line.number)

        return written

    def _ended(self, outcome: Outcome) -> None:
        booking = outcome.booking
        if booking is None:
            self._events.tell("not_committed", key=outcome.job.key, error=outcome.error)
        else:
            self._events.tell("committed", key=booking.key, confirmation_id=booking.confirmation_id)
        self.ledger.finished(outcome.job.number, outcome.response, now=self._clock.now(), failed=booking is None)
        self.flush()
        for told in self.on_ended:
            told()

    def _tell_known(self, call: FunctionCall) -> None:
        key = normalise(call.name, call.args)
        job = next((each for each in reversed(self.ledger.jobs) if each.key == key), None)
        first = None if job is None else job.call_id
        if first == call.id:
            self._events.tell("asked_again", id=call.id)
        else:
            self._events.tell("reissued", id=call.id, duplicate_of=first)
