"""The contract of a session that its application owns, over loopback sockets; its release is in test_release.py."""

import asyncio
from collections.abc import Callable

import pytest

from lab.live.lifecycle import PUBLISHED, REPAIRED, VARIANTS, Variant
from lab.live.lifecycle.endings import (
    ClosedByServer,
    ClosedHere,
    ConnectionLost,
    NotConnected,
    SessionError,
    SetupRefused,
    UnexpectedClosure,
)
from lab.live.lifecycle.peer import SILENCE, VANISH, end, say
from tests.live.lifecycle.scenes import DEADLINE_S, opened, pends, play, session_to, until

EVERY = [pytest.param(variant, id=name) for name, variant in VARIANTS.items()]


@pytest.mark.parametrize("variant", EVERY)
def test_what_is_said_is_answered(variant: Variant) -> None:
    async def scene(url: str) -> None:
        session = await opened(url, variant)
        assert not session.is_closed
        await session.send_text("hello")
        if variant.reads_text_frames:
            async with asyncio.timeout(DEADLINE_S):
                answer = await anext(session.responses)
            assert answer.server_content is not None
        await session.close()
        assert session.is_closed

    play(scene)


def test_a_text_frame_of_the_server_is_lost_as_published() -> None:
    async def scene(url: str) -> None:
        session = await opened(url, REPAIRED)
        await session.send_text("hello")
        await session.send_text(end(1011))

        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(UnexpectedClosure):
                await anext(session.responses)

    play(scene)


def test_close_twice_and_at_once_is_one_close() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        await asyncio.gather(session.close(), session.close())
        await session.close()

        assert session.is_closed

    play(scene)


def test_a_close_of_a_session_that_never_connected_is_nothing() -> None:
    async def scene(url: str) -> None:
        session = session_to(url)
        await session.close()

        assert session.is_closed
        assert not session.responses.finished

    play(scene)


def test_what_was_not_read_at_a_close_is_dropped() -> None:
    async def scene(url: str) -> None:
        session = session_to(url)
        await session.connect()
        await session.close()

        assert await pends(session.responses)

    play(scene)


def test_a_closed_session_says_that_it_was_closed_here() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        await session.close()

        with pytest.raises(ClosedHere):
            await session.send_text("too late")

    play(scene)


def test_a_send_before_connect_says_so_and_as_published_says_nothing() -> None:
    async def scene(url: str) -> None:
        with pytest.raises(NotConnected):
            await session_to(url).send_text("too early")
        await session_to(url, REPAIRED).send_text("too early")

    play(scene)


def test_a_resume_without_a_name_is_refused_here() -> None:
    async def scene(url: str) -> None:
        with pytest.raises(NotConnected):
            await session_to(url).resume()

    play(scene)


def test_a_resumed_session_is_read_from_the_same_stream() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        await session.close()
        await session.resume("a handle")
        await session.send_text("hello")
        async with asyncio.timeout(DEADLINE_S):
            again, answer = await anext(session.responses), await anext(session.responses)

        assert again.setup_complete is not None
        assert answer.server_content is not None
        await session.close()

    play(scene)


def test_a_resume_of_an_open_session_closes_its_connection_first() -> None:
    async def scene(url: str) -> None:
        ports: list[int] = []
        session = session_to(url, ports=ports)
        await session.connect()
        await session.resume("a handle")

        assert len(ports) == 2
        assert not session.is_closed
        await session.close()

    play(scene)


def test_a_session_that_is_connected_is_not_connected_again() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        with pytest.raises(SessionError, match="connected already"):
            await session.connect()
        await session.close()

    play(scene)


@pytest.mark.parametrize("wish", [end, say], ids=["and TCP ends", "and TCP stays open"])
@pytest.mark.parametrize("code", [1000, 1001, 1008, 1011])
def test_the_servers_close_is_told_with_its_code_to_reader_and_sender(code: int, wish: Callable[[int], str]) -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        await session.send_text(wish(code))
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(ClosedByServer) as told:
                await anext(session.responses)
        assert told.value.closure is not None
        assert told.value.closure.code == code
        assert session.is_closed
        with pytest.raises(ClosedByServer):
            await session.send_text("anybody there?")

    play(scene)


def test_the_servers_1001_passes_for_the_users_close_as_published() -> None:
    async def scene(url: str) -> None:
        session = await opened(url, REPAIRED)
        await session.send_text(end(1001))
        live = session._service._socket
        assert live is not None
        await until(lambda: live.messages.finished, "the server's close")

        assert await pends(session.responses)
        assert not session.is_closed
        await session.close()

    play(scene)


def test_any_other_code_is_an_unexpected_closure_as_published() -> None:
    async def scene(url: str) -> None:
        session = await opened(url, PUBLISHED)
        await session.send_text(end(1011))
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(UnexpectedClosure):
                await anext(session.responses)

    play(scene)


def test_a_connection_without_a_goodbye_is_lost_and_can_be_resumed() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        await session.send_text(VANISH)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(ConnectionLost):
                await anext(session.responses)
        await session.resume("a handle")

        assert (await anext(session.responses)).setup_complete is not None
        await session.close()

    play(scene)


@pytest.mark.parametrize("code", [1001, 1011])
def test_a_refused_setup_is_an_error_of_the_setup(code: int) -> None:
    async def scene(url: str) -> None:
        session = session_to(url, model=end(code))
        with pytest.raises(SetupRefused) as refused:
            await session.connect()

        assert refused.value.closure is not None
        assert refused.value.closure.code == code

    play(scene)


def test_a_setup_refused_with_1001_passes_for_a_connection_as_published() -> None:
    async def scene(url: str) -> None:
        session = session_to(url, REPAIRED, model=end(1001))
        await session.connect()

        assert not session.is_closed
        await session.close()

    play(scene)


def test_a_setup_refused_with_1011_is_an_unexpected_closure_as_published() -> None:
    async def scene(url: str) -> None:
        session = session_to(url, PUBLISHED, model=end(1011))
        with pytest.raises(UnexpectedClosure):
            await session.connect()

    play(scene)


def test_a_cancelled_connect_leaves_no_connection() -> None:
    async def scene(url: str) -> None:
        ports: list[int] = []
        session = session_to(url, model=SILENCE, ports=ports)
        attempt = asyncio.ensure_future(session.connect())
        await until(lambda: bool(ports), "TCP")
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)

        assert attempt.cancelled()
        assert session.is_closed

    play(scene)
