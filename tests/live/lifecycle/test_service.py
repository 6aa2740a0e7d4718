"""What a service does with what comes, and that nothing of it holds its session."""

import asyncio
import weakref
from collections.abc import Callable

import pytest

from lab.core.errors import UsageError
from lab.live.lifecycle import LAB, VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import (
    ClosedHere,
    Closure,
    NotConnected,
    Party,
    SessionError,
    SetupRefused,
    WireEnded,
)
from lab.live.lifecycle.service import Service
from lab.live.protocol import wire
from lab.live.protocol.messages import ServerMessage, SessionResumptionUpdate, Setup, SetupComplete
from tests.live.lifecycle.scenes import TURNS, pends

DEADLINE_S = 5.0
READY = wire.encode(ServerMessage(setup_complete=SetupComplete()))
EVERY = [pytest.param(variant, id=name) for name, variant in VARIANTS.items()]


class Told:
    """A wire whose server says what a test tells it to."""

    def __init__(self, *came: bytes) -> None:
        self.coming: asyncio.Queue[bytes | Closure] = asyncio.Queue()
        for data in came:
            self.coming.put_nowait(data)
        self.sent: list[bytes] = []
        self.codes: list[int] = []

    async def open(self) -> None:
        pass

    async def receive(self) -> str | bytes:
        came = await self.coming.get()
        if isinstance(came, Closure):
            raise WireEnded(came)
        return came

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def cancel(self, code: int, _: str) -> None:
        self.codes.append(code)
        self.coming.put_nowait(Closure(Party.US, code))

    def leave(self, code: int, _: str) -> None:
        self.codes.append(code)


def made(variant: Variant, *told: Told) -> LiveSession:
    """A session whose connections are these, one after the other."""
    wires = iter(told)
    return LiveSession(lambda: next(wires), Setup("m"), variant)


async def attempting(session: LiveSession, told: Told) -> "asyncio.Task[None]":
    """An attempt that waits for the setup's answer."""
    attempt = asyncio.ensure_future(session.connect())
    while not told.sent:
        await asyncio.sleep(0)
    return attempt


async def turns(number: int = TURNS) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def name(handle: str) -> bytes:
    return wire.encode(ServerMessage(session_resumption_update=SessionResumptionUpdate(handle, True)))


def play(scene: Callable[[], object]) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scene()  # type: ignore[misc]  # a coroutine function

    asyncio.run(scenario())


@pytest.mark.parametrize("variant", EVERY)
def test_no_task_holds_the_session(variant: Variant) -> None:
    """Not even for the collector to find: the last reference of the application is the last one."""

    async def scene() -> None:
        session = made(variant, Told(READY))
        await session.connect()
        reader = asyncio.ensure_future(anext(session.responses))
        sender = asyncio.ensure_future(session.send_text("hello"))
        gone = weakref.ref(session)
        service = session._service
        del session

        assert gone() is None
        await asyncio.gather(reader, sender, return_exceptions=True)
        await service.close()

    play(scene)


def test_the_latest_name_is_the_one_to_resume_by() -> None:
    async def scene() -> None:
        stale = wire.encode(ServerMessage(session_resumption_update=SessionResumptionUpdate("none", False)))
        session = made(LAB, Told(READY, name("first"), name("second"), stale))
        await session.connect()
        for _ in range(4):
            await anext(session.responses)
        assert session.handle == "second"
        await session.close()

    play(scene)


def test_what_is_no_message_ends_the_session_and_who_reads_and_who_sends_is_told_why() -> None:
    async def scene() -> None:
        told = Told(READY, b'{"serverContent": 7}')
        session = made(LAB, told)
        await session.connect()
        await anext(session.responses)
        for waiting in (anext(session.responses), session.send_text("hello")):
            with pytest.raises(SessionError, match="not the protocol"):
                await waiting

        assert session.is_closed
        await session.close()
        assert told.codes

    play(scene)


def test_an_answer_to_the_setup_that_is_no_message_is_an_error_of_connect() -> None:
    async def scene() -> None:
        session = made(LAB, Told(b"[]"))
        with pytest.raises(SessionError, match="answer to the setup"):
            await session.connect()

        assert session.is_closed

    play(scene)


def test_an_end_of_our_own_before_the_setups_answer_is_no_session() -> None:
    async def scene() -> None:
        told = Told()
        told.coming.put_nowait(Closure(Party.US, 1000))
        session = made(LAB, told)
        with pytest.raises(ClosedHere):
            await session.connect()

        assert session.is_closed

    play(scene)


def test_closed_while_it_connects_the_attempt_is_told() -> None:
    async def scene() -> None:
        told = Told()
        session = made(LAB, told)
        attempt = await attempting(session, told)
        await session.close()
        with pytest.raises(ClosedHere):
            await attempt

        assert told.codes[0] == 1000

    play(scene)


@pytest.mark.parametrize("cancelled", [False, True], ids=["closed", "cancelled"])
def test_an_attempt_that_was_closed_is_over_and_another_can_begin(cancelled: bool) -> None:
    async def scene() -> None:
        first, second = Told(), Told(READY)
        session = made(LAB, first, second)
        attempt = await attempting(session, first)
        if cancelled:
            attempt.cancel()
        await session.close()
        await session.connect()

        assert not session.is_closed
        with pytest.raises(asyncio.CancelledError if cancelled else ClosedHere):
            await attempt
        await session.close()

    play(scene)


def test_a_resume_during_an_attempt_takes_its_place() -> None:
    async def scene() -> None:
        first, second = Told(), Told(READY)
        session = made(LAB, first, second)
        attempt = await attempting(session, first)
        await session.resume("a handle")

        assert b"a handle" in second.sent[0]
        with pytest.raises(ClosedHere):
            await attempt
        await session.close()

    play(scene)


def test_an_attempt_whose_place_another_took_ends_nothing_when_it_is_cancelled() -> None:
    async def scene() -> None:
        first, second = Told(), Told(READY)
        session = made(LAB, first, second)
        connecting = await attempting(session, first)
        replaced = session._service._attempt
        assert replaced is not None
        replaced.add_done_callback(lambda _: connecting.cancel())
        await session.resume("a handle")
        with pytest.raises(asyncio.CancelledError):
            await connecting

        assert not session.is_closed
        assert second.codes == []
        await session.close()

    play(scene)


def test_an_attempt_that_was_closed_leaves_no_task() -> None:
    async def scene() -> None:
        before = asyncio.all_tasks()
        told = Told()  # its server says nothing, whatever it is told
        session = made(LAB, told)
        attempt = await attempting(session, told)
        await session.close()
        with pytest.raises(ClosedHere):
            await attempt
        await turns()

        assert asyncio.all_tasks() == before

    play(scene)


def test_a_connect_that_is_cancelled_in_the_turn_of_its_success_leaves_no_session_open() -> None:
    async def scene() -> None:
        told = Told()
        session = made(LAB, told)
        connecting = await attempting(session, told)
        attempt = session._service._attempt
        assert attempt is not None
        attempt.add_done_callback(lambda _: connecting.cancel())  # behind connect's own
        told.coming.put_nowait(READY)
        with pytest.raises(asyncio.CancelledError):
            await connecting

        assert session.is_closed
        assert told.codes == [1000]

    play(scene)


class Misnamed(Told):
    """A wire whose URL is none."""

    async def open(self) -> None:
        raise UsageError("'http://here' is no WebSocket URL: it is HTTP's.", fix="ws://HOST:PORT/PATH.")


def test_a_connect_to_no_url_is_told_to_who_reads_and_to_who_sends_with_what_mends_it() -> None:
    async def scene() -> None:
        session = made(LAB, Misnamed())
        with pytest.raises(UsageError):
            await session.connect()
        for waiting in (anext(session.responses), session.send_text("hello")):
            with pytest.raises(NotConnected, match="is no WebSocket URL") as told:
                await waiting
            assert "http://here' is no WebSocket URL: it is HTTP's. Fix: ws://HOST:PORT/PATH." in str(told.value)

    play(scene)


class Refusing(Told):
    """A server that closes before it is told anything."""

    async def send(self, _: bytes) -> None:
        raise WireEnded(Closure(Party.SERVER, 1008))


@pytest.mark.parametrize("code", [1001, 1008])
def test_a_close_that_comes_before_the_setup_was_written_refuses_it(code: int) -> None:
    async def scene() -> None:
        told = Refusing()
        told.coming.put_nowait(Closure(Party.SERVER, code))
        session = made(LAB, told)
        with pytest.raises(SetupRefused, match=str(code)):
            await session.connect()

    play(scene)


class Slow(Told):
    """A server that does not answer a close before it is let."""

    def __init__(self, *came: bytes) -> None:
        super().__init__(*came)
        self.let = asyncio.Event()

    async def cancel(self, code: int, reason: str) -> None:
        await self.let.wait()
        await super().cancel(code, reason)


def test_released_after_a_late_end_of_the_connection_before_it_closes_the_present_one() -> None:
    async def scene() -> None:
        first, second = Slow(READY), Told(READY)
        session = made(LAB, first, second)
        await session.connect()
        first.coming.put_nowait(b"not the protocol")
        while not session.is_closed:
            await asyncio.sleep(0)
        await session.connect()
        shutting = session._service._shutting
        assert shutting is not None
        first.let.set()
        await shutting
        service = session._service
        del session

        assert second.codes == [1000], "at once"
        await service.close()

    play(scene)


def test_a_close_that_is_cancelled_goes_on_and_another_waits_for_it() -> None:
    async def scene() -> None:
        told = Slow(READY)
        session = made(LAB, told)
        await session.connect()
        closing = asyncio.ensure_future(session.close())
        await turns()
        closing.cancel()
        await turns()
        told.let.set()
        await session.close()

        assert told.codes == [1000]

    play(scene)


@pytest.mark.parametrize("late", range(6))
def test_what_was_on_its_way_to_the_reader_at_a_close_is_dropped(late: int) -> None:
    """Wherever it is by then, so many turns after it came."""

    async def scene() -> None:
        told = Told(READY)
        session = made(LAB, told)
        await session.connect()
        await anext(session.responses)
        told.coming.put_nowait(name("unread"))
        await turns(late)
        await session.close()

        assert await pends(session.responses)

    play(scene)


def test_a_service_that_was_released_connects_no_more() -> None:
    async def scene() -> None:
        service = Service(Told, LAB)
        service.release()

        with pytest.raises(ClosedHere, match="released"):
            await service.connect(Setup("m"))
        assert service.responses.finished

    play(scene)


def test_what_waits_to_be_written_at_a_close_is_told() -> None:
    async def scene() -> None:
        session = made(LAB, Told(READY))
        await session.connect()
        answers = [session.send_text(str(number)) for number in range(3)]
        await session.close()
        told = await asyncio.gather(*answers, return_exceptions=True)

        assert {type(answer) for answer in told} <= {type(None), ClosedHere}

    play(scene)
