"""A connection that is watched is ended where nothing answers; one that is not waits for its kernel."""

import asyncio

import pytest

from lab.live.lifecycle import LiveSession
from lab.live.lifecycle.endings import ConnectionLost
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import Setup
from lab.live.recovery.liveness import Patience
from tests.live.lifecycle.scenes import noting, opened, pends, play, until
from tests.live.lifecycle.test_websocket import raw_server

OFTEN = Patience(ping_every_s=0.02)
IMPATIENT = Patience(ping_every_s=0.02, lost_after_s=0.1, first_pong_s=0.1)


def test_a_server_that_answers_no_ping_is_lost_with_what_showed_it() -> None:
    async def scenario() -> None:
        async with raw_server() as url:
            session = LiveSession(lambda: WebSocketWire(url, watch=IMPATIENT), Setup("m"))
            with pytest.raises(ConnectionLost, match=r"nothing came for 0\.\d s, not even a pong"):
                await session.connect()

    asyncio.run(scenario())


def test_a_server_that_answers_pings_is_not_however_little_it_says() -> None:
    async def scenario() -> None:
        async with noting() as (url, codes):
            session = LiveSession(lambda: WebSocketWire(url, watch=OFTEN), Setup("m"))
            await session.connect()
            await anext(session.responses)
            live = session._service._wire
            assert isinstance(live, WebSocketWire)
            connection = live._connection
            assert connection is not None
            pongs = []
            connection._ears.pong = lambda *at: pongs.append(at)  # type: ignore[method-assign]
            await until(lambda: len(pongs) > 2, "pongs")

            assert not session.is_closed
            await session.close()
            assert await codes.get() == 1000

    asyncio.run(scenario())


def test_a_session_that_is_watched_ends_as_another_and_its_watch_with_it() -> None:
    async def scene(url: str) -> None:
        before = asyncio.all_tasks()
        session = LiveSession(lambda: WebSocketWire(url, watch=Patience()), Setup("m"))
        await session.connect()
        await session.close()
        await until(lambda: asyncio.all_tasks() == before, "its tasks' end")

        assert await pends(session.responses)

    play(scene)


@pytest.mark.parametrize("says", [b"\x88\x02\x03\xf3", b"\xff\xff"], ids=["a close frame", "what is no frame"])
def test_a_connection_that_is_over_when_it_is_open_is_not_watched(says: bytes) -> None:
    """The answer to the upgrade and the end come in one segment."""

    async def scenario() -> None:
        async with raw_server(says) as url:
            before = asyncio.all_tasks()
            live = WebSocketWire(url, watch=Patience())
            await live.open()
            await until(lambda: asyncio.all_tasks() <= before, "its tasks' end")

    asyncio.run(scenario())


def test_unwatched_a_silent_server_is_waited_for() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        assert await pends(session.responses)
        await session.close()

    play(scene)
