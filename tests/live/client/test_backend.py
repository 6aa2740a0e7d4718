import asyncio
import time

from lab.live.client.backend import Backend, Fault, Outcome
from lab.live.client.background import Background
from lab.live.client.bookings import Bookings
from lab.live.client.events import Events
from lab.live.client.judging import Saying
from lab.live.clock import Clock
from lab.live.recovery.ledger import Job
from lab.live.timelapse import Lapse

DEADLINE_S = 5.0


class Worked:
    """A backend at twenty times its pace."""

    def __init__(self, fault: Fault = Fault.NONE, *, unique: bool = False) -> None:
        self.clock = Clock()
        self.clock.enter(Lapse(time.monotonic(), 20))
        self.bookings = Bookings(unique=unique)
        self.outcomes: list[Outcome] = []
        background = Background(Events(self.clock, lambda *_, **__: None))
        self.backend = Backend(self.bookings, self.clock, background, self.outcomes.append, fault=fault)

    def start(self, number: int = 1) -> float:
        self.backend.start(Job(number, "key", f"call-{number}", "book_slot", {"slot": "tomorrow 3pm"}, 0.0))
        return self.clock.now()

    async def ended(self, count: int = 1) -> Outcome:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.outcomes) < count:
                await asyncio.sleep(0.01)
        return self.outcomes[-1]


def test_a_job_is_committed_four_seconds_after_its_call() -> None:
    async def scenario() -> None:
        worked = Worked()
        began = worked.start()
        outcome = await worked.ended()

        assert outcome.response == {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}
        (row,) = worked.bookings.rows()
        assert 4.0 <= row.committed_at - began < 24.0  # A second of the wall late.
        assert row.call_id == "call-1"

    asyncio.run(scenario())


def test_the_truth_is_that_of_the_instant_that_is_asked_for() -> None:
    async def scenario() -> None:
        worked = Worked()
        before = worked.clock.now()
        began = worked.start()
        await worked.ended()

        truth = worked.backend.truth
        assert [truth(before - 1), truth(began), truth(began + 3.9), truth(worked.clock.now())] == [
            *(Saying.NOTHING, Saying.IN_PROGRESS, Saying.IN_PROGRESS, Saying.BOOKED)
        ]

    asyncio.run(scenario())


def test_a_database_that_takes_a_key_once_fails_the_second_job_and_it_stays_booked() -> None:
    async def scenario() -> None:
        worked = Worked(unique=True)
        worked.start(1)
        worked.start(2)
        outcome = await worked.ended(2)

        assert outcome.response["status"] == "failed"
        assert worked.bookings.count() == 1
        assert worked.backend.truth(worked.clock.now()) is Saying.BOOKED

    asyncio.run(scenario())


def test_a_backend_that_refuses_says_so() -> None:
    async def scenario() -> None:
        worked = Worked(Fault.FAIL)
        worked.start()
        outcome = await worked.ended()

        assert outcome.booking is None
        assert worked.backend.truth(worked.clock.now()) is Saying.FAILED
        assert worked.backend.committed_t() is None

    asyncio.run(scenario())


def test_what_is_not_committed_when_it_stops_never_is() -> None:
    async def scenario() -> None:
        worked = Worked()
        worked.start()
        await worked.backend.stop()

        assert worked.bookings.count() == 0
        assert worked.outcomes == []

    asyncio.run(scenario())
