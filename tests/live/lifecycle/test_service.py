"""What a service does with what comes, and that nothing of it holds its session."""

import asyncio
import weakref
from collections.abc import Callable

import pytest

from lab.live.lifecycle import LAB, VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import ClosedHere, Closure, Party, SessionError, WireEnded
from lab.live.lifecycle.service import Service
from lab.live.protocol import wire
from lab.live.protocol.messages import ServerMessage, SessionResumptionUpdate, Setup, SetupComplete

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


def made(variant: Variant, told: Told) -> LiveSession:
    return LiveSession(lambda: told, Setup("m"), variant)


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
        session = made(LAB, Told(READY, name("first"), name("second")))
        await session.connect()
        while session.handle != "second":
            await anext(session.responses)
        await session.close()

    play(scene)


def test_what_is_no_message_ends_the_session_with_the_reason() -> None:
    async def scene() -> None:
        told = Told(READY, b'{"serverContent": 7}')
        session = made(LAB, told)
        await session.connect()
        await anext(session.responses)
        with pytest.raises(SessionError, match="not the protocol"):
            await anext(session.responses)

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


def test_closed_while_it_connects_the_attempt_is_told() -> None:
    async def scene() -> None:
        told = Told()
        session = made(LAB, told)
        attempt = asyncio.ensure_future(session.connect())
        while not told.sent:
            await asyncio.sleep(0)
        await session.close()
        with pytest.raises(ClosedHere):
            await attempt

        assert told.codes == [1000]

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
