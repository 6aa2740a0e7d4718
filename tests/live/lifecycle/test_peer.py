"""What the peer does at a wish, as a client of websockets' own sees it."""

from websockets.asyncio.client import connect
from websockets.protocol import State

from lab.live.lifecycle.peer import cross, say
from lab.live.protocol import wire
from lab.live.protocol.messages import RealtimeInput, Setup
from tests.live.lifecycle.scenes import play, until


def test_asked_to_say_a_code_it_says_it_and_keeps_tcp_open() -> None:
    async def scene(url: str) -> None:
        client = await connect(url, proxy=None, compression=None)
        await client.send(wire.encode(Setup(say(1011))).decode("ascii"))
        await until(lambda: client.protocol.state is State.CLOSING, "the server's close frame")

        assert client.protocol.close_rcvd is not None
        assert (client.protocol.close_rcvd.code, client.protocol.close_rcvd.reason) == (1011, "as told")
        assert not client.transport.is_closing()
        client.transport.abort()

    play(scene)


def test_asked_to_cross_it_answers_and_closes_only_when_a_close_is_there_that_it_has_not_read() -> None:
    async def scene(url: str) -> None:
        client = await connect(url, proxy=None, compression=None)
        await client.send(wire.encode(Setup("m")).decode("ascii"))
        await client.recv()
        await client.send(wire.encode(RealtimeInput(text=cross(1011))).decode("ascii"))
        await client.recv()
        assert client.protocol.state is State.OPEN
        await client.close(1000)

        assert client.protocol.close_sent is not None
        assert client.protocol.close_rcvd is not None
        assert (client.protocol.close_sent.code, client.protocol.close_rcvd.code) == (1000, 1011)
        assert client.protocol.close_rcvd_then_sent is False

    play(scene)
