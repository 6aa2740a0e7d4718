"""A flush over WebSocket is over with what it waited for; a close frame is the end; what is no message is told."""

import asyncio
from typing import Any

import pytest

from lab.host.protocol.errors import NoMessage
from lab.host.protocol.framing import MOST
from lab.host.protocol.messages import AudioInput, ErrorTold, Event, Ping, Request
from lab.host.shell.transport import TransportClosed
from lab.host.tables.stage import WEBSOCKET
from tests.host.shell.pairs import play, stop_reading, until


@pytest.mark.parametrize("goes", [False, True])
def test_a_flush_waits_until_the_kernel_has_everything(goes: bool) -> None:
    async def scenario() -> None:
        async with WEBSOCKET.pair() as (ours, theirs):
            connection = ours._connection  # type: ignore[attr-defined]  # the bare connection
            stop_reading(theirs)
            while not connection.transport.get_write_buffer_size():
                ours.put(AudioInput(bytes(1000)))  # until the kernel takes no more
                await asyncio.sleep(0)
            flushing = asyncio.ensure_future(ours.flush())
            for _ in range(5):
                await asyncio.sleep(0)
            assert not flushing.done()  # nobody reads
            if goes:
                connection.transport.abort()  # without a word of an error
            else:
                theirs.abort()
            with pytest.raises(TransportClosed):
                await flushing
            theirs.abort()
            ours.abort()

    play(scenario)


def test_a_flush_is_over_with_what_it_waited_for_whatever_is_queued_meanwhile() -> None:
    """Before its waiter runs: that is no end of the transport."""

    async def scenario() -> None:
        async with WEBSOCKET.pair() as (ours, theirs):
            sent = [Event(ErrorTold(text)) for text in ("first", "more")]
            flushing = asyncio.ensure_future(ours.flush())
            for message in sent:
                ours.put(message)
                await asyncio.sleep(0)
            await flushing
            assert [await theirs.receive() for _ in sent] == sent
            theirs.abort()
            ours.abort()

    play(scenario)


@pytest.mark.parametrize("by_host", [False, True])
def test_a_close_frame_is_the_end_whatever_becomes_of_tcp(by_host: bool) -> None:
    """Who sent it does not end TCP, as its rule is, since it reads no answer."""

    async def scenario() -> None:
        async with WEBSOCKET.pair() as (host, remote):
            sender, told = (host, remote) if by_host else (remote, host)
            sender.put(Event(ErrorTold("the last")))
            await sender.flush()
            say_close(sender, 1011)
            assert await told.receive() == Event(ErrorTold("the last"))
            with pytest.raises(TransportClosed, match="1011"):
                await told.receive()
            with pytest.raises(TransportClosed, match="1011"):
                told.put(Event(ErrorTold("too late")))
            await told.close()
            sender.abort()

    play(scenario)


def test_a_close_frame_is_the_end_also_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.host.shell.websocket.CLOSE_S", 0.02)

    async def scenario() -> None:
        async with WEBSOCKET.pair() as (host, remote):
            stop_reading(remote)
            for _ in range(40):
                host.put(AudioInput(bytes(MOST // 2)))
            say_close(remote, 1001)
            with pytest.raises(TransportClosed, match="1001"):
                await host.receive()
            with pytest.raises(TransportClosed):
                await host.flush()
            remote.abort()

    play(scenario)


def say_close(transport: Any, code: int) -> None:
    """A close frame, from who then neither reads nor ends TCP."""
    stop_reading(transport)
    transport._connection.protocol.send_close(code, "")
    transport._connection.send_data()


def test_a_text_frame_is_no_message_and_the_next_one_is_read() -> None:
    async def scenario() -> None:
        async with WEBSOCKET.pair() as (host, remote):
            await remote._connection.send("hello")  # type: ignore[attr-defined]  # the bare connection
            remote.put(Request("1", Ping()))
            with pytest.raises(NoMessage, match="a text frame"):
                await host.receive()
            assert await host.receive() == Request("1", Ping())
            await remote.close()
            await host.close()

    play(scenario)


def test_a_message_that_is_too_long_ends_it_with_1009() -> None:
    async def scenario() -> None:
        async with WEBSOCKET.pair() as (host, remote):
            connection = remote._connection  # type: ignore[attr-defined]  # the bare connection
            await connection.send(bytes(MOST + 1))
            with pytest.raises(TransportClosed):
                await host.receive()
            with pytest.raises(TransportClosed, match="1009"):
                await remote.receive()
            await until(lambda: connection.close_code == 1009, "the sender is told 1009")
            await remote.close()
            await host.close()

    play(scenario)
