"""The wire on websockets, over loopback."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from lab.core.errors import UsageError
from lab.live.client import tap
from lab.live.lifecycle import LAB, LiveSession, websocket
from lab.live.lifecycle.endings import (
    ABNORMAL,
    ClosedByServer,
    Closure,
    ConnectionLost,
    NotConnected,
    Party,
    SetupRefused,
    WireEnded,
    told,
)
from lab.live.lifecycle.peer import SILENCE, VANISH, end, peer, say
from lab.live.lifecycle.socket import LiveSocket
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol import paths, wire
from lab.live.protocol.messages import RealtimeInput, ServerMessage, Setup, SetupComplete
from lab.live.server.certificates import authority, server_context
from tests.live.lifecycle.scenes import DEADLINE_S, TURNS, noting, play, until


async def opened(url: str, wish: str = "m") -> WebSocketWire:
    made = WebSocketWire(url)
    await made.open()
    await made.send(wire.encode(Setup(wish)))
    return made


async def ending(made: WebSocketWire) -> Closure:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await made.receive()
            except WireEnded as ended:
                return ended.closure


async def upgraded(reader: asyncio.StreamReader) -> list[bytes]:
    """A server's answer to a WebSocket's request."""
    protocol = ServerProtocol()
    protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
    (request,) = protocol.events_received()
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    return protocol.data_to_send()


@contextlib.asynccontextmanager
async def raw_server(says: bytes = b"", *, reset: bool = False) -> AsyncIterator[str]:
    """A server that upgrades, says these octets, and reads no more; or resets the connection then."""
    kept: list[asyncio.Transport] = []

    async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines([*await upgraded(reader), says])
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        kept.append(writer.transport)
        if reset:
            opened = writer.transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async with asyncio.timeout(4 * DEADLINE_S), await asyncio.start_server(upgrade, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for transport in kept:
            transport.abort()


async def _nothing(_: ServerConnection) -> None:
    pass


def test_a_close_of_ours_is_ours_although_the_server_answers_it() -> None:
    async def scene(url: str) -> None:
        made = await opened(url)
        await made.cancel(1000, "done")
        assert await ending(made) == Closure(Party.US, 1000, "done")

    play(scene)


def test_a_servers_close_is_the_servers() -> None:
    async def scene(url: str) -> None:
        assert await ending(await opened(url, end(1001))) == Closure(Party.SERVER, 1001, "as told")

    play(scene)


def test_a_servers_close_is_told_when_its_frame_is_read_whatever_tcp_does() -> None:
    async def scene(url: str) -> None:
        made = await opened(url, say(1011))
        assert await ending(made) == Closure(Party.SERVER, 1011, "as told")
        with pytest.raises(WireEnded):
            await made.send(b"late")

    play(scene)


@contextlib.asynccontextmanager
async def stuck_behind(
    data: bytes, *, closing: bool = False
) -> AsyncIterator[tuple[WebSocketWire, "asyncio.Future[None]", asyncio.StreamReader]]:
    """A wire with so much to write that its kernel takes no more, and a server that then closes with 1011; it reads on
    as soon as somebody does. Or its own close waits behind that, and the server's crosses it."""
    arrived: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
        asyncio.get_running_loop().create_future()
    )

    async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(await upgraded(reader))
        arrived.set_result((reader, writer))

    async with asyncio.timeout(4 * DEADLINE_S), await asyncio.start_server(upgrade, "127.0.0.1", 0) as server:
        made = WebSocketWire(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await made.open()
        reader, writer = await arrived
        sending = asyncio.ensure_future(made.send(data))
        connection = made._connection
        assert connection is not None
        await until(lambda: connection.transport.get_write_buffer_size() > 0, "a kernel that takes no more")
        ours = asyncio.ensure_future(made.cancel(1000, "")) if closing else None
        await until(lambda: (connection.protocol.close_sent is not None) is closing, "our close")
        writer.write(b"\x88\x02" + struct.pack("!H", 1011))
        yield made, sending, reader
        if ours is not None:
            await ours
        writer.transport.abort()


def test_the_answer_is_written_behind_what_the_kernel_has_not_taken_and_the_reader_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tap, "LINGER_S", 0.0)  # of who awaits TCP's end, and nothing else
    data = bytes(32 * 2**20)

    async def scenario() -> None:
        async with stuck_behind(data) as (made, sending, server):
            live = LiveSocket(made, LAB)
            await live.receive()
            assert live.recorded == Closure(Party.SERVER, 1011)
            with pytest.raises(ClosedByServer):
                await anext(live.messages)
            assert not sending.done()

            came = await server.read()
            header, mask, said = came[-8:-6], came[-6:-2], came[-2:]
            assert len(came) > len(data)
            assert header == b"\x88\x82"
            assert bytes(one ^ other for one, other in zip(said, mask, strict=False)) == struct.pack("!H", 1011)
            with pytest.raises(WireEnded):
                await sending

    asyncio.run(scenario())


@pytest.mark.parametrize(("closing", "by"), [(False, Party.SERVER), (True, Party.US)], ids=["an answer", "a close"])
def test_what_nobody_takes_is_not_waited_for_longer_than_an_answer(
    closing: bool, by: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "ANSWER_S", 1.0)

    async def scenario() -> None:
        async with stuck_behind(bytes(32 * 2**20), closing=closing) as (made, sending, _):
            assert await ending(made) == Closure(by, 1011)
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(WireEnded):
                    await sending
            connection = made._connection
            assert connection is not None
            assert connection.protocol.state is State.CLOSED

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("frames", "code", "says"),
    [
        (b"\x81\x01\xff", 1007, "no UTF-8"),
        (b"\x01\x00" + 5000 * b"\x00\x00" + b"\x80\x00", 1009, "in too many fragments"),
    ],
    ids=["no UTF-8", "in too many pieces"],
)
def test_a_message_that_cannot_be_read_is_closed_for_with_its_code(
    frames: bytes, code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "ANSWER_S", 0.2)

    async def scenario() -> None:
        async with raw_server(frames) as url:
            made = WebSocketWire(url)
            await made.open()
            ended = await ending(made)
            assert (ended.by, ended.code) == (Party.NETWORK, ABNORMAL)
            assert says in ended.reason
            connection = made._connection
            assert connection is not None
            sent = connection.protocol.close_sent
            assert sent is not None
            assert sent.code == code

    asyncio.run(scenario())


def test_a_message_that_cannot_be_read_ends_the_session_for_who_reads_and_who_sends() -> None:
    """A close of ours, which the application did not ask for."""
    ready = wire.encode(ServerMessage(setup_complete=SetupComplete()))
    frames = b"\x82" + bytes([len(ready)]) + ready + b"\x81\x01\xff"

    async def scenario() -> None:
        async with raw_server(frames) as url:
            session = LiveSession(lambda: WebSocketWire(url), Setup("m"))
            await session.connect()
            await anext(session.responses)
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(ConnectionLost, match="no UTF-8"):
                    await anext(session.responses)
            assert session.is_closed
            with pytest.raises(ConnectionLost, match="no UTF-8"):
                await session.send_text("hello")

    asyncio.run(scenario())


def test_what_is_no_frame_ends_it_whatever_tcp_does() -> None:
    async def scenario() -> None:
        async with raw_server(b"\xff\xff") as url:
            made = WebSocketWire(url)
            await made.open()
            assert (await ending(made)).by is Party.NETWORK

    asyncio.run(scenario())


def test_cancelled_while_the_servers_close_is_answered_tcp_is_over_without_waiting_for_it() -> None:
    """The close lies unread, with a frame before it, when the cancel begins."""

    async def scene(url: str) -> None:
        made = await opened(url)
        await made.send(wire.encode(RealtimeInput(text=end(1011))))
        connection = made._connection
        assert connection is not None
        await until(lambda: connection.protocol.state is not State.OPEN, "the server's close")
        await made.cancel(1000, "")

        await until(lambda: connection.transport.get_extra_info("socket").fileno() == -1, "the end of TCP")

    play(scene)


def test_an_end_without_a_close_frame_is_the_networks() -> None:
    async def scene(url: str) -> None:
        assert await ending(await opened(url, VANISH)) == Closure(Party.NETWORK, ABNORMAL)

    play(scene)


def test_a_connection_that_is_lost_is_told_with_the_kernels_reason() -> None:
    async def scenario() -> None:
        async with raw_server(reset=True) as url:
            made = WebSocketWire(url)
            await made.open()
            ended = await ending(made)

        assert ended == Closure(Party.NETWORK, ABNORMAL, "ECONNRESET")
        assert "without a close frame: ECONNRESET." in str(told(ended))

    asyncio.run(scenario())


def test_a_path_that_nobody_serves_is_told_with_the_path_that_is() -> None:
    def answer(connection: ServerConnection, _: Request) -> Response:
        return connection.respond(HTTPStatus.NOT_FOUND, "")

    async def scenario() -> None:
        async with serve(_nothing, "127.0.0.1", 0, process_request=answer) as server:
            url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
            session = LiveSession(lambda: WebSocketWire(url), Setup("m"))
            with pytest.raises(SetupRefused) as refused:
                await session.connect()

        assert "404" in refused.value.message
        assert paths.developer() in (refused.value.fix or "")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8765/ws", "127.0.0.1:8765", "ws://", "ws://[bad", "ws://127.0.0.1:99999/", "ws://a..b/"]
)
def test_what_is_no_url_of_a_websocket_is_an_error_in_words(url: str) -> None:
    async def scenario() -> None:
        session = LiveSession(lambda: WebSocketWire(url), Setup("m"))
        with pytest.raises(UsageError, match="is no WebSocket URL") as told:
            await session.connect()

        assert "Fix: ws://HOST:PORT/PATH" in str(told.value)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "to", ["ws://[bad", "ws://127.0.0.1:99999/", "ws://a..b/", "http://127.0.0.1:1/", "gopher://x"]
)
def test_a_redirect_to_no_url_of_a_websocket_is_the_servers_refusal_for_everybody(to: str) -> None:
    def answer(connection: ServerConnection, _: Request) -> Response:
        response = connection.respond(HTTPStatus.FOUND, "")
        response.headers["Location"] = to
        return response

    async def scenario() -> None:
        async with serve(_nothing, "127.0.0.1", 0, process_request=answer) as server:
            url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
            session = LiveSession(lambda: WebSocketWire(url), Setup("m"))
            reading = asyncio.ensure_future(anext(session.responses))
            await asyncio.sleep(0)
            for asks in (session.connect, lambda: reading, lambda: session.send_text("late")):
                with pytest.raises(SetupRefused) as refused:
                    async with asyncio.timeout(DEADLINE_S):
                        await asks()
                assert f"302 Found, to {to!r}, which is no WebSocket URL" in refused.value.message
                assert url not in str(refused.value)

    asyncio.run(scenario())


def test_left_without_waiting_it_is_ours() -> None:
    async def scene(url: str) -> None:
        made = await opened(url)
        made.leave(1001, "")
        made.leave(1001, "")
        assert (await ending(made)).by is Party.US

    play(scene)


def test_left_in_the_middle_of_a_write_there_is_no_close_frame_within_another_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the collector runs there, and a finalizer leaves: FIN cuts the frame off, and nothing else comes."""

    async def scene(url: str) -> None:
        made = await opened(url)
        connection = made._connection
        assert connection is not None
        write, written = connection.transport.write, []

        def half(data: bytes) -> None:
            written.append(data)
            if len(written) == 1:
                write(data[: len(data) // 2])
                made.leave(1000, "")

        monkeypatch.setattr(connection.transport, "write", half)
        with contextlib.suppress(WireEnded):
            await made.send(wire.encode(RealtimeInput(text="hello")))
        assert len(written) == 1
        assert (await ending(made)).by is Party.US

    play(scene)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "over TLS"])
@pytest.mark.parametrize(("elsewhere", "code"), [(False, 1000), (True, 1006)], ids=["in its thread", "in another"])
def test_left_in_its_own_thread_it_says_its_code_and_in_another_it_just_ends(
    elsewhere: bool, code: int, tls: bool, tmp_path: Path
) -> None:
    async def scenario() -> None:
        by = authority(tmp_path) if tls else None
        trusted = None if by is None else ssl.create_default_context(cafile=by.path)
        served = noting(None if by is None else server_context(by))
        async with asyncio.timeout(4 * DEADLINE_S), served as (url, codes):
            made = WebSocketWire(url, ssl=trusted)
            await made.open()
            if elsewhere:
                threading.Thread(target=made.leave, args=(1000, "")).start()
            else:
                made.leave(1000, "")
            assert await codes.get() == code
            await made.cancel(1000, "")

    asyncio.run(scenario())


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "over TLS"])
def test_left_when_it_is_over_nothing_happens(tls: bool, tmp_path: Path) -> None:
    async def scenario() -> None:
        by = authority(tmp_path) if tls else None
        async with asyncio.timeout(4 * DEADLINE_S), peer(None if by is None else server_context(by)) as url:
            made = WebSocketWire(url, ssl=None if by is None else ssl.create_default_context(cafile=by.path))
            await made.open()
            await made.send(wire.encode(Setup(end(1001))))
            assert (await ending(made)).by is Party.SERVER
            connection = made._connection
            assert connection is not None
            await until(lambda: connection.protocol.state is State.CLOSED, "the end")
            made.leave(1000, "")

    asyncio.run(scenario())


def test_a_receive_that_is_cancelled_lets_go_of_the_connection() -> None:
    async def scene(url: str) -> None:
        made = await opened(url, SILENCE)
        receiving = asyncio.ensure_future(made.receive())
        await asyncio.sleep(0)
        receiving.cancel()
        connection = made._connection
        assert connection is not None
        await until(lambda: connection.protocol.state is State.CLOSED, "the end")

    play(scene)


def test_a_cancel_that_is_cancelled_lets_go_of_the_connection() -> None:
    async def scenario() -> None:
        async with raw_server() as url:
            made = WebSocketWire(url)
            await made.open()
            cancelling = asyncio.ensure_future(made.cancel(1000, ""))
            await asyncio.sleep(0)
            cancelling.cancel()
            connection = made._connection
            assert connection is not None
            await until(lambda: connection.protocol.state is State.CLOSED, "the end")

    asyncio.run(scenario())


def test_left_before_it_was_opened_nothing_happens() -> None:
    async def scene(url: str) -> None:
        WebSocketWire(url).leave(1001, "")

    play(scene)


def test_nobody_listens_is_an_error_of_the_system() -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(ConnectionRefusedError):
                await WebSocketWire(f"ws://127.0.0.1:{taken.getsockname()[1]}").open()

    asyncio.run(scenario())


def test_a_certificate_that_is_not_trusted_is_an_error_of_the_system_and_not_of_the_url(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with noting(server_context(authority(tmp_path))) as (url, _):
            session = LiveSession(lambda: WebSocketWire(url, ssl=ssl.create_default_context()), Setup("m"))
            with pytest.raises(ssl.SSLCertVerificationError):
                await session.connect()
            with pytest.raises(NotConnected, match="certificate verify failed"):
                await session.send_text("hello")

    asyncio.run(scenario())


def test_a_server_that_never_answers_the_close_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the kernel takes no more: websockets' own deadline begins only when it has."""
    monkeypatch.setattr(websocket, "ANSWER_S", 0.2)

    async def scenario() -> None:
        async with raw_server() as url:
            made = WebSocketWire(url)
            await made.open()
            stuck = asyncio.ensure_future(made.send(bytes(64 * 2**20)))
            await asyncio.sleep(0)
            async with asyncio.timeout(DEADLINE_S):
                await made.cancel(1000, "")
                with pytest.raises(WireEnded):
                    await stuck
            assert (await ending(made)).by is Party.US

    asyncio.run(scenario())


def test_a_silent_server_is_waited_for() -> None:
    async def scene(url: str) -> None:
        made = await opened(url, SILENCE)
        receiving = asyncio.ensure_future(made.receive())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert not receiving.done()
        await made.cancel(1000, "")
        with pytest.raises(WireEnded):
            await receiving

    play(scene)


def test_over_tls_a_session_that_its_server_ended_is_released_as_any_other(tmp_path: Path) -> None:
    """asyncio has no socket any more for a transport that was closed twice, and raises."""

    async def scenario() -> None:
        by = authority(tmp_path)
        trusted = ssl.create_default_context(cafile=by.path)
        async with asyncio.timeout(4 * DEADLINE_S), peer(server_context(by)) as url:
            session = LiveSession(lambda: WebSocketWire(url, ssl=trusted), Setup("m"))
            await session.connect()
            await session.send_text(end(1001))
            responses = session.responses
            await anext(responses)
            with pytest.raises(ClosedByServer):
                await anext(responses)
            await session.close()
            del session

            assert responses.finished

    asyncio.run(scenario())
