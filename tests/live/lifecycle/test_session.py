"""The contract of a session that its application owns, over loopback sockets."""

import asyncio
import contextlib
import gc
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from lab.live.client.tap import TappedConnection
from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import (
    ClosedByServer,
    ClosedHere,
    ConnectionLost,
    NotConnected,
    SessionError,
    SetupRefused,
    UnexpectedClosure,
)
from lab.live.lifecycle.peer import SILENCE, VANISH, end, peer, say
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import ServerMessage
from tests.live.lifecycle.scenes import DEADLINE_S, gone, opened, play, session_to, until

RELEASING = [pytest.param(variant, id=variant.name) for variant in (REPAIRED, LAB)]
TURNS = 20
"""Of the event loop: more than anything takes that needs no network."""

EVERY = [pytest.param(variant, id=name) for name, variant in VARIANTS.items()]


def service_of(session: LiveSession) -> "weakref.ref[Service]":
    return weakref.ref(session._service)


async def read_out(responses: Stream[ServerMessage]) -> list[ServerMessage]:
    async with asyncio.timeout(DEADLINE_S):
        return [message async for message in responses]


async def pends(responses: Stream[ServerMessage]) -> bool:
    """Whether a reader gets nothing, no message, no error, no end, of what has happened up to now."""
    reading = asyncio.ensure_future(anext(responses))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    reading.cancel()
    return not reading.done()


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


@pytest.mark.parametrize("variant", RELEASING)
def test_a_released_session_closes_and_its_stream_ends(variant: Variant) -> None:
    async def scene(url: str) -> None:
        session = await opened(url, variant)
        responses, service = session.responses, service_of(session)
        del session

        assert await read_out(responses) == []
        await gone(service)

    play(scene)


def test_a_session_released_as_published_stays_open() -> None:
    async def scene(url: str) -> None:
        session = await opened(url, PUBLISHED)
        responses, service = session.responses, service_of(session)
        del session
        gc.collect()

        assert await pends(responses)
        leaked = service()
        assert leaked is not None
        await leaked.close()

    play(scene)


@pytest.mark.parametrize("variant", EVERY)
def test_closed_and_then_released_every_variants_stream_ends(variant: Variant) -> None:
    async def scene(url: str) -> None:
        session = await opened(url, variant)
        responses, service = session.responses, service_of(session)
        await session.close()
        assert await pends(responses), "after close the stream stays open"
        del session

        assert await read_out(responses) == []
        await gone(service)

    play(scene)


def test_a_reader_that_holds_only_the_stream_does_not_keep_the_session() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        reader = asyncio.ensure_future(read_out(session.responses))
        await asyncio.sleep(0)
        del session

        assert await reader == []

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


def test_released_while_it_connects_the_attempt_ends_as_closed_here() -> None:
    async def scene(url: str) -> None:
        ports: list[int] = []
        session = session_to(url, model=SILENCE, ports=ports)
        attempt = asyncio.ensure_future(session.connect())
        await until(lambda: bool(ports), "TCP")
        del session

        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(ClosedHere):
                await attempt

    play(scene)


def test_released_before_the_attempt_began_it_never_dials() -> None:
    async def scene(url: str) -> None:
        ports: list[int] = []
        session = session_to(url, ports=ports)
        attempt = asyncio.ensure_future(session.connect())
        del session

        with pytest.raises(ClosedHere):
            await attempt
        assert ports == []

    play(scene)


def test_released_with_a_send_queued_the_sender_is_told() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        answers = [session.send_audio(bytes(3200)) for _ in range(100)]
        responses = session.responses
        del session
        async with asyncio.timeout(DEADLINE_S):
            told = await asyncio.gather(*answers, return_exceptions=True)

        assert all(answer is None or isinstance(answer, ClosedHere) for answer in told)
        assert responses.finished

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


def test_released_in_another_thread_it_closes_all_the_same() -> None:
    async def scene(url: str) -> None:
        session = await opened(url)
        responses, service = session.responses, service_of(session)
        held = [session]
        del session
        thread = threading.Thread(target=held.clear)
        thread.start()

        assert await read_out(responses) == []
        await gone(service)
        thread.join()

    play(scene)


@contextlib.contextmanager
def peer_elsewhere() -> Iterator[str]:
    """A peer in a loop and a thread of its own: nothing on the client's side turns for it."""
    ready, over = threading.Event(), threading.Event()
    found: list[str] = []

    def serve() -> None:
        async def run() -> None:
            async with peer() as url:
                found.append(url)
                ready.set()
                await asyncio.to_thread(over.wait, 4 * DEADLINE_S)

        asyncio.run(run())

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(DEADLINE_S)
    try:
        yield found[0]
    finally:
        over.set()
        thread.join()


def connection_of(session: LiveSession) -> TappedConnection:
    wire = session._service._wire
    assert isinstance(wire, WebSocketWire)
    assert wire._connection is not None
    return wire._connection


def socket_under(session: LiveSession) -> int:
    """A descriptor of its own for the session's socket."""
    return os.dup(connection_of(session).transport.get_extra_info("socket").fileno())


def last_words(descriptor: int) -> bytes:
    """What the server said at last; the way out is shut by now, and the server ends TCP as well."""
    with socket.socket(fileno=descriptor) as opened_socket:
        opened_socket.settimeout(DEADLINE_S)
        with pytest.raises(BrokenPipeError):
            opened_socket.send(b"x")
        answer = b""
        while octets := opened_socket.recv(4096):
            answer += octets
    return answer


def said_goodbye(descriptor: int) -> bool:
    """Whether the server has answered a close frame."""
    return last_words(descriptor)[-4:-2] == bytes([0x88, 2])  # a close frame with a code and no reason


def test_released_while_the_loop_stands_still_the_server_sees_the_end() -> None:
    with peer_elsewhere() as url, asyncio.Runner() as runner:
        session = runner.run(opened(url))
        responses, descriptor = session.responses, socket_under(session)
        del session

        assert responses.finished
        assert said_goodbye(descriptor), "although the loop has not run since"
        assert runner.run(read_out(responses)) == []


def test_released_in_the_turn_in_which_its_loop_stops_the_server_sees_the_end() -> None:
    left: list[tuple[TappedConnection, int]] = []

    async def main(url: str) -> None:
        session = await opened(url)
        left.append((connection_of(session), socket_under(session)))

    with peer_elsewhere() as url, asyncio.Runner() as runner:
        runner.run(main(url))
        connection, descriptor = left[0]

        last_words(descriptor)  # of which the loop may have read the answer in its last turn
        assert connection.protocol.close_sent is not None


def test_released_in_another_thread_while_its_loop_is_busy_the_server_sees_the_end() -> None:
    """A frame may be half written at that time, so that there is none."""

    async def scene(url: str) -> None:
        held = [await opened(url)]
        responses, descriptor = held[0].responses, socket_under(held[0])
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()

        assert last_words(descriptor) == b"", "although the loop has not turned since"
        assert await read_out(responses) == []

    with peer_elsewhere() as url:
        asyncio.run(scene(url))


def test_released_in_another_thread_in_the_turn_in_which_its_loop_stops_the_server_sees_the_end() -> None:
    descriptors: list[int] = []

    async def main(url: str) -> None:
        held = [await opened(url)]
        descriptors.append(socket_under(held[0]))
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()

    with peer_elsewhere() as url, asyncio.Runner() as runner:
        runner.run(main(url))

        assert last_words(descriptors[0]) == b""


def test_never_connected_and_released_in_another_thread_its_reader_is_told() -> None:
    async def scene() -> None:
        held = [session_to("ws://192.0.2.1")]
        reader = asyncio.ensure_future(read_out(held[0].responses))
        await asyncio.sleep(0)
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()

        assert await reader == []

    asyncio.run(scene(), debug=True)  # says so where a loop is touched from another thread


@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")  # asyncio's, of a loop closed too early
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the same, while it is collected
def test_released_after_its_loop_was_closed_the_server_sees_the_end() -> None:
    with peer_elsewhere() as url:
        loop = asyncio.new_event_loop()
        session = loop.run_until_complete(opened(url))
        descriptor = socket_under(session)
        loop.close()
        del session

        assert said_goodbye(descriptor)
        gc.collect()


def test_a_loop_that_ends_says_goodbye_for_its_sessions() -> None:
    kept: list[LiveSession] = []

    async def scene(url: str) -> None:
        kept.append(await opened(url))

    play(scene)

    assert kept[0].is_closed
