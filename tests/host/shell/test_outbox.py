"""What a host sends in place of a message, what it owes, and who hears that an answer was taken."""

import asyncio

import pytest

from lab.host.machine.commands import Audit, Note
from lab.host.protocol.codec import Codec
from lab.host.protocol.framing import frame
from lab.host.protocol.messages import AgentInfo, ErrorTold, Event, Message, Pong, Response
from lab.host.shell.outbox import MOST_OWED, Outbox
from lab.host.shell.transport import TransportClosed, Undeliverable
from tests.host.shell.leaping import Slow, play


class Counted(Slow):
    """Queues all of it, until it is flushed."""

    refusing = False

    def put(self, message: Message) -> None:
        data = frame(Codec().encode(message))
        if self.refusing:
            raise Undeliverable("not taken")
        super().put(message)
        self.queued += len(data)

    async def flush(self) -> None:
        await super().flush()
        self.queued = 0


async def other() -> None:
    """A task that is not the one that sends."""


def test_an_answer_that_is_too_long_is_said_to_be_so_and_is_not_taken_as_it_is() -> None:
    async def scenario() -> None:
        transport, notes = Counted(), list[Note]()
        outbox = Outbox(transport, notes.append)
        reading = asyncio.ensure_future(other())
        assert not outbox.send(Response("1", AgentInfo("s1", "x" * MOST_OWED)), reading)
        (said,) = transport.taken
        assert isinstance(said, Response)
        assert said.error
        assert outbox.send(Response("2", Pong()), reading)
        assert notes == []

    assert play(scenario) == []


def test_what_is_not_taken_is_noted_and_a_transport_that_is_gone_raises() -> None:
    async def scenario() -> None:
        transport, notes = Counted(), list[Note]()
        outbox = Outbox(transport, notes.append)
        reading = asyncio.ensure_future(other())
        transport.refusing = True
        assert not outbox.send(Response("1", Pong()), reading)
        assert notes == [Note(Audit.UNSENT, {"what": "Response", "error": "not taken"})]
        transport.refusing = False
        outbox.abort()
        assert outbox.over.is_set()
        with pytest.raises(TransportClosed):
            outbox.send(Response("2", Pong()), reading)

    assert play(scenario) == []


@pytest.mark.parametrize("reading", [False, True], ids=["told", "said in reading"])
def test_what_was_asked_for_is_waited_for_and_what_happened_is_not(reading: bool) -> None:
    async def scenario() -> None:
        transport = Counted(flush_s=1.0)
        outbox = Outbox(transport, lambda _note: None)
        here = asyncio.current_task()
        assert here is not None
        task = here if reading else asyncio.ensure_future(other())
        for _ in range(3):
            outbox.send(Event(ErrorTold("x" * (MOST_OWED // 2))), task)
        await outbox.room()
        assert transport.queued == 0 if reading else transport.queued > MOST_OWED
        for number in range(3):
            outbox.send(Response(f"{number}", AgentInfo("s1", "x" * (MOST_OWED // 2))), task)
        await outbox.room()
        assert transport.queued == 0

    assert play(scenario) == []


def test_who_waits_for_an_answers_delivery_hears_it_once_and_nobody_else_does() -> None:
    async def scenario() -> None:
        outbox = Outbox(Counted(), lambda _note: None)
        outbox.delivered("1", delivered=True)
        with outbox.delivering("1") as told:
            outbox.delivered("2", delivered=True)
            assert not told.done()
            outbox.delivered("1", delivered=False)
            outbox.delivered("1", delivered=True)
            assert not await told
        outbox.delivered("1", delivered=True)

    assert play(scenario) == []


@pytest.mark.parametrize(("close_s", "aborted"), [(1.0, False), (5.0, True)])
def test_a_close_is_over_at_its_instant_at_the_latest(close_s: float, aborted: bool) -> None:
    async def scenario() -> None:
        transport = Counted(close_s=close_s)
        outbox = Outbox(transport, lambda _note: None)
        await outbox.close(by=3.0)
        assert outbox.over.is_set()
        assert asyncio.get_running_loop().time() == pytest.approx(min(close_s, 3.0))
        assert transport.aborted is aborted

    assert play(scenario) == []
