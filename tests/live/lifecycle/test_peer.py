"""What the peer does at a wish, as a client of websockets' own sees it."""

from websockets.asyncio.client import connect
from websockets.protocol import State

from lab.live.lifecycle.peer import say
from lab.live.protocol import wire
from lab.live.protocol.messages import Setup
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
