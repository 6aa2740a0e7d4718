"""A session whose last reference goes: over loopback sockets, in every thread, whatever its event loop does."""

import asyncio
import contextlib
import gc
import os
import socket
import threading
import weakref
from collections.abc import Iterator

import pytest

from lab.live.client.tap import TappedConnection
from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import ClosedHere
from lab.live.lifecycle.peer import SILENCE, peer
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.websocket import WebSocketWire
from tests.live.lifecycle.scenes import DEADLINE_S, gone, opened, pends, play, read_out, session_to, until

RELEASING = [pytest.param(variant, id=variant.name) for variant in (REPAIRED, LAB)]
EVERY = [pytest.param(variant, id=name) for name, variant in VARIANTS.items()]


def service_of(session: LiveSession) -> "weakref.ref[Service]":
    return weakref.ref(session._service)


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
