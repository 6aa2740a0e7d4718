"""What a refused attempt means to whoever connects, reads and sends; and for a session closed a moment ago."""

import asyncio
import contextlib
import weakref
from collections.abc import Callable

import pytest

from lab.core.errors import UsageError
from lab.live.lifecycle import LAB, REPAIRED, LiveSession, attempts
from lab.live.lifecycle.endings import (
    ABNORMAL,
    ClosedHere,
    Closure,
    ConnectionLost,
    NotConnected,
    Party,
    SetupRefused,
    UnexpectedClosure,
)
from lab.live.protocol.messages import RealtimeInput, SessionResumption, Setup
from tests.live.lifecycle.scenes import gone, pends
from tests.live.lifecycle.test_service import READY, Told, made, name, play

LOCKED = Closure(Party.SERVER, 1011, "Internal error encountered.")
OTHER = Closure(Party.SERVER, 1008, "not found")


def saying(closure: Closure) -> Told:
    """A wire whose server says no."""
    told = Told()
    told.coming.put_nowait(closure)
    return told


class Dark(Told):
    """A wire on a path that goes dark: nobody answers its close."""

    async def cancel(self, code: int, _: str) -> None:
        self.codes.append(code)
        self.coming.put_nowait(Closure(Party.US, ABNORMAL))


class Nobody(Told):
    """A wire that nobody listens at."""

    async def open(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


async def named(*later: Told) -> LiveSession:
    """A session with a handle, which would have these connections next."""
    session = made(LAB, Told(READY, name("h")), *later)
    await session.connect()
    while session.handle is None:
        await asyncio.sleep(0)
    return session


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "AGAIN_S", 0.0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("closed", [True, False], ids=["closed before", "closed by the resume"])
def test_a_resume_right_after_a_close_waits_until_the_server_has_let_go(closed: bool) -> None:
    async def scene() -> None:
        session = await named(saying(LOCKED), saying(LOCKED), Told(READY))
        if closed:
            await session.close()
        await session.resume()

        assert not session.is_closed
        await session.close()

    play(scene)


@pytest.mark.usefixtures("at_once")
def test_a_close_ends_the_waiting_too() -> None:
    async def scene() -> None:
        refusals = [saying(LOCKED) for _ in range(50)]
        session = await named(*refusals)
        await session.close()
        resuming = asyncio.ensure_future(session.resume())
        while not refusals[2].sent:
            await asyncio.sleep(0)
        await session.close()
        with pytest.raises(ClosedHere):
            await resuming

    play(scene)


@pytest.mark.usefixtures("at_once")
def test_a_session_that_stays_locked_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SETTLES_S", 0.0)

    async def scene() -> None:
        session = await named(saying(LOCKED))
        await session.close()
        with pytest.raises(SetupRefused, match=r"Fix: resume\(\) again later"):
            await session.resume()

    play(scene)


@pytest.mark.usefixtures("at_once")
def test_a_server_that_did_not_answer_the_close_is_not_waited_for() -> None:
    """It has not seen it, and holds the session for as long as it takes the connection for alive."""

    async def scene() -> None:
        session = made(LAB, Dark(READY, name("h")), saying(LOCKED), Told(READY))
        await session.connect()
        await session.close()
        with pytest.raises(SetupRefused, match=r"Fix: resume\(\) again later"):
            await session.resume("h")

    play(scene)


@pytest.mark.usefixtures("at_once")
def test_a_session_that_its_server_closed_is_not_waited_for() -> None:
    """No close of ours has to settle."""

    async def scene() -> None:
        closed = Told(READY, name("h"))
        session = made(LAB, closed, saying(LOCKED), Told(READY))
        await session.connect()
        closed.coming.put_nowait(OTHER)
        while not session.is_closed:
            await asyncio.sleep(0)
        with pytest.raises(SetupRefused, match="1011"):
            await session.resume("h")

    play(scene)


@pytest.mark.usefixtures("at_once")
def test_another_session_that_is_refused_is_not_waited_for() -> None:
    """Nothing is locked that it asks for."""

    async def scene() -> None:
        session = await named(saying(LOCKED), Told(READY))
        await session.close()
        with pytest.raises(SetupRefused, match="1011"):
            await session.connect()

    play(scene)


def test_another_refusal_is_final() -> None:
    async def scene() -> None:
        session = await named(saying(OTHER))
        with pytest.raises(SetupRefused, match="1008"):
            await session.resume()

    play(scene)


def test_as_published_a_refused_resume_is_not_tried_again() -> None:
    async def scene() -> None:
        session = made(REPAIRED, Told(READY, name("h")), saying(LOCKED))
        await session.connect()
        await session.close()
        with pytest.raises(UnexpectedClosure):
            await session.resume("h")

    play(scene)


def test_after_a_refused_resume_reader_and_sender_are_told_of_it() -> None:
    async def scene() -> None:
        session = await named(saying(OTHER), Told(READY))
        await anext(session.responses), await anext(session.responses)
        reading = asyncio.ensure_future(anext(session.responses))
        await asyncio.sleep(0)
        with pytest.raises(SetupRefused):
            await session.resume()
        with pytest.raises(SetupRefused, match="1008"):
            await reading
        with pytest.raises(SetupRefused, match="1008"):
            await session.send_text("anybody there?")

        await session.resume()
        assert (await anext(session.responses)).setup_complete is not None
        await session.close()

    play(scene)


def test_a_refused_resume_is_told_in_place_of_the_loss_before_it() -> None:
    async def scene() -> None:
        lost = Told(READY, name("h"))
        session = made(LAB, lost, saying(OTHER))
        await session.connect()
        await anext(session.responses), await anext(session.responses)
        lost.coming.put_nowait(Closure(Party.NETWORK, ABNORMAL))
        with pytest.raises(ConnectionLost):
            await anext(session.responses)
        with pytest.raises(SetupRefused):
            await session.resume()
        with pytest.raises(SetupRefused, match="1008"):
            await anext(session.responses)

    play(scene)


def test_after_an_attempt_at_nobody_reader_and_sender_are_told_of_it() -> None:
    async def scene() -> None:
        session = made(LAB, Nobody())
        with pytest.raises(ConnectionRefusedError):
            await session.connect()
        with pytest.raises(NotConnected, match="Connection refused"):
            await anext(session.responses)
        with pytest.raises(NotConnected, match="Connection refused"):
            await session.send_text("anybody there?")

    play(scene)


def test_an_attempt_that_was_closed_says_nothing_to_a_reader() -> None:
    async def scene() -> None:
        told = Told()
        session = made(LAB, told)
        attempt = asyncio.ensure_future(session.connect())
        while not told.sent:
            await asyncio.sleep(0)
        await session.close()
        with pytest.raises(ClosedHere):
            await attempt

        assert await pends(session.responses)

    play(scene)


def test_what_is_told_of_an_attempt_keeps_nothing_of_it() -> None:
    async def scene() -> None:
        session = made(LAB, saying(OTHER))
        service, responses = weakref.ref(session._service), session.responses
        with contextlib.suppress(SetupRefused):
            await session.connect()
        del session
        await gone(service)

        with pytest.raises(SetupRefused):
            await anext(responses)

    play(scene)


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        (Setup("m", session_resumption=SessionResumption()), "not named the session. Fix: Wait until"),
        (Setup("m"), "does not ask for a handle. Fix: Ask for one"),
    ],
    ids=["asked for", "not asked for"],
)
def test_without_a_name_a_resume_says_whether_one_may_still_come(setup: Setup, says: str) -> None:
    async def scene() -> None:
        session = LiveSession(Told, setup)
        with pytest.raises(NotConnected) as told:
            await session.resume()

        assert says in str(told.value)

    play(scene)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda session: session.send("hello"), "not a value of type str. Fix: send_text"),
        (lambda session: session.send(None), "not None"),
        (lambda _: LiveSession(Told, None), "begins with a Setup, not with None"),  # type: ignore[arg-type]
        (lambda _: LiveSession(Told, "models/m"), "not with a value of type str"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_is_refused_at_the_call_in_words(wrong: Callable[[LiveSession], object], says: str) -> None:
    async def scene() -> None:
        session = await named()
        with pytest.raises(UsageError) as told:
            wrong(session)

        assert says in str(told.value)
        await session.send(RealtimeInput(text="hello"))
        await session.close()

    play(scene)
