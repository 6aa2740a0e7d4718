"""Messages go both ways over each carrier; what is none is told once; a transport has one owner."""

import asyncio
import errno
import socket

import pytest

from lab.core.errors import UsageError
from lab.host.protocol.errors import FrameTooLong, FrameTruncated, NoMessage
from lab.host.protocol.framing import MOST, frame
from lab.host.protocol.messages import AudioInput, ErrorTold, Event, Ping, Pong, Request, Response
from lab.host.shell.failures import RequestFailed
from lab.host.shell.host import SessionHost
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import TransportClosed
from lab.host.tables.stage import Carrier
from tests.host.shell.pairs import CARRIERS, play, raw, stream

each_carrier = pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)


@each_carrier
def test_messages_go_both_ways_in_their_order(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (host, remote):
            sent = [Request(str(number), Ping()) for number in range(50)]
            for message in sent:
                remote.put(message)
            assert [await host.receive() for _ in sent] == sent
            host.put(Response("1", Pong()))
            await host.flush()
            assert await remote.receive() == Response("1", Pong())
            await remote.close()
            with pytest.raises(TransportClosed):
                await host.receive()
            await host.close()

    play(scenario)


@each_carrier
def test_what_is_queued_is_written_before_a_close(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (host, remote):
            sent = [AudioInput(bytes(100_000), 16_000, 1, number) for number in range(20)]
            for message in sent:
                host.put(message)
            closing = asyncio.ensure_future(host.close())
            assert [await remote.receive() for _ in sent] == sent
            with pytest.raises(TransportClosed):
                await remote.receive()
            await remote.close()
            await closing

    play(scenario)


@each_carrier
def test_nothing_is_queued_behind_the_end(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (host, remote):
            host.abort()
            with pytest.raises(TransportClosed):
                host.put(Event(ErrorTold("no")))
            with pytest.raises(TransportClosed):
                await remote.receive()
            await remote.close()

    play(scenario)


@each_carrier
def test_a_message_that_is_too_long_is_not_sent_and_the_next_one_is(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (host, remote):
            with pytest.raises(FrameTooLong):
                host.put(AudioInput(bytes(MOST)))
            host.put(Response("1", Pong()))
            assert await remote.receive() == Response("1", Pong())
            await remote.close()
            await host.close()

    play(scenario)


@each_carrier
def test_a_transport_has_one_owner(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (ours, theirs):
            host, remote = SessionHost(ours), RemoteSession(theirs)
            with pytest.raises(UsageError, match=r"a host's already.*Make a transport of its own for a host"):
                SessionHost(ours)
            with pytest.raises(UsageError, match="a remote's already"):
                SessionHost(theirs)
            with pytest.raises(UsageError):
                RemoteSession(ours)
            # Who had them is served on.
            with pytest.raises(RequestFailed, match="no active session"):
                await remote.ping()
            await remote.close()
            await host.close()

    play(scenario)


def test_a_frame_that_is_no_message_is_told_and_the_next_one_read() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, writer):
            writer.write(frame(b"\xff\xff") + frame(b'"\x05\n\x011\x12\x00'))
            with pytest.raises(NoMessage):
                await transport.receive()
            assert await transport.receive() == Request("1", Ping())

    play(scenario)


def test_a_frame_that_is_too_long_is_told_once_behind_what_came_before() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, writer):
            writer.write(frame(b'"\x05\n\x011\x12\x00') + b"\x7f\xff\xff\xff" + b"rest")
            assert await transport.receive() == Request("1", Ping())
            with pytest.raises(FrameTooLong, match="2147483647"):
                await transport.receive()
            with pytest.raises(TransportClosed):
                await transport.receive()

    play(scenario)


def test_an_end_in_the_midst_of_a_frame_is_told_once() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, writer):
            writer.write(b"\x00\x00\x00\x09abc")
            writer.write_eof()
            with pytest.raises(FrameTruncated, match="7 octets of a frame, before 13"):
                await transport.receive()
            with pytest.raises(TransportClosed, match="other side ended it"):
                await transport.receive()

    play(scenario)


def test_a_flush_waits_until_the_kernel_has_everything() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        transport = await stream(ours)
        while not transport._writer.transport.get_write_buffer_size():
            transport.put(AudioInput(bytes(1000)))  # until the kernel takes no more
        flushing = asyncio.ensure_future(transport.flush())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not flushing.done()  # nobody reads
        theirs.close()
        with pytest.raises(TransportClosed):
            await flushing
        transport.abort()

    play(scenario)


def test_a_flush_tells_the_kernels_give_up_as_the_transports_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drain() -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    async def scenario() -> None:
        async with raw() as (transport, _, _):
            monkeypatch.setattr(transport._writer, "drain", drain)
            with pytest.raises(TransportClosed, match="Connection timed out"):
                await transport.flush()

    play(scenario)
