import asyncio
import time

import pytest

from lab.live.client import tap
from lab.live.client.link import Address, Ending, Failed, Phase, Refused
from lab.live.client.wire_link import WireLink
from lab.live.lifecycle.peer import peer, say
from lab.live.protocol.messages import RealtimeInput, SessionResumption, Setup
from tests.live.client.fake import FakeServer, serving

SETUP = Setup("models/m")
DEADLINE_S = 5.0


class Ears:
    def __init__(self) -> None:
        self.addresses: list[Address] = []
        self.heard_at: list[float] = []
        self.pongs: list[tuple[float, float]] = []

    def connected(self, local: Address, remote: Address) -> None:
        self.addresses = [local, remote]

    def heard(self, at: float) -> None:
        self.heard_at.append(at)

    def pong(self, sent_at: float, at: float) -> None:
        self.pongs.append((sent_at, at))


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_the_setups_answer_opens_the_link_and_is_its_first_message() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            ears = Ears()
            link = WireLink(server.url, ears)
            await link.connect(SETUP)

            first = await anext(aiter(link))
            assert first.setup_complete is not None
            assert link.phase is Phase.OPEN
            assert ears.addresses[1][1] == int(server.url.rsplit(":", 1)[1])
            link.abort()

    asyncio.run(scenario())


def test_a_close_during_the_setup_is_a_refusal_with_its_code_and_reason() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(locked=True)) as server:
            with pytest.raises(Refused) as refused:
                await WireLink(server.url, Ears()).connect(Setup("m", session_resumption=handle()))

            assert (refused.value.code, refused.value.reason) == (1011, "Internal error encountered.")
            assert refused.value.phase is Phase.SETUP

    asyncio.run(scenario())


@pytest.mark.parametrize("in_setup", [True, False], ids=["in the setup", "later"])
def test_a_servers_close_is_told_although_it_keeps_tcp_open(in_setup: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap, "LINGER_S", 0.05)

    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S), peer() as url:
            link = WireLink(url, Ears())
            if in_setup:
                with pytest.raises(Refused) as refused:
                    await link.connect(Setup(say(1011)))
                assert (refused.value.code, refused.value.phase) == (1011, Phase.SETUP)
            else:
                await link.connect(SETUP)
                link.send(RealtimeInput(text=say(1011)))
                async for _ in link:
                    pass
                assert link.ending == Ending(1011, "as told", "server")

    asyncio.run(scenario())


def test_an_http_refusal_has_its_status_and_the_phase_of_the_upgrade() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(status=429)) as server:
            with pytest.raises(Refused) as refused:
                await WireLink(server.url, Ears()).connect(SETUP)

            assert (refused.value.code, refused.value.phase) == (429, Phase.UPGRADE)

    asyncio.run(scenario())


def test_a_port_that_nobody_listens_on_fails_with_the_kernels_word() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            url = server.url
        with pytest.raises(Failed) as failed:
            await WireLink(url, Ears()).connect(SETUP)

        assert (failed.value.why, failed.value.phase) == ("ECONNREFUSED", Phase.CONNECT)

    asyncio.run(scenario())


def test_a_cancelled_attempt_leaves_no_connection_behind() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(hangs_in_setup=True)) as server:
            link = WireLink(server.url, Ears())
            connecting = asyncio.ensure_future(link.connect(SETUP))
            await until(lambda: server.setups)
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)

            assert connecting.cancelled()
            assert link.phase is Phase.SETUP

    asyncio.run(scenario())


def test_a_ping_tells_its_pong() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            ears = Ears()
            link = WireLink(server.url, ears)
            await link.connect(SETUP)
            link.ping()
            await until(lambda: ears.pongs)

            assert 0 <= ears.pongs[0][1] - ears.pongs[0][0] < 1
            link.abort()

    asyncio.run(scenario())


def test_a_pong_says_that_what_was_sent_before_its_ping_has_arrived() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            ears = Ears()
            link = WireLink(server.url, ears)
            await link.connect(SETUP)
            link.send(RealtimeInput(text="Book it"))
            link.ping()
            await until(lambda: ears.pongs)

            messages = aiter(link)
            seen = [await anext(messages) for _ in range(3)]
            assert seen[-1].tool_call is not None
            link.abort()

    asyncio.run(scenario())


def test_what_comes_is_read_while_nobody_consumes_it() -> None:
    """websockets' own queue would stop the reader, and with it the pongs, after 16 messages."""

    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            ears = Ears()
            link = WireLink(server.url, ears)
            await link.connect(SETUP)
            for _ in range(200):
                await server.speak("more")
            link.ping()
            await until(lambda: ears.pongs)

            messages = aiter(link)
            for _ in range(2 + 3 * 200):
                await anext(messages)
            link.abort()

    asyncio.run(scenario())


def test_an_abort_ends_the_link_at_once_and_sends_no_close_frame() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            link = WireLink(server.url, Ears())
            await link.connect(SETUP)
            began = time.monotonic()
            link.abort()
            assert time.monotonic() - began < 0.05
            await until(lambda: server.closes)

            assert server.closes == [None]
            await until(lambda: link.ending)
            assert link.ending is not None
            assert (link.ending.code, link.ending.by) == (None, "us")

    asyncio.run(scenario())


def test_a_close_is_queued_and_answered_in_the_background() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            link = WireLink(server.url, Ears())
            await link.connect(SETUP)
            link.close(1000)
            link.close(1000)
            await until(lambda: link.ending)

            assert server.closes == [1000]
            assert link.ending is not None
            assert (link.ending.code, link.ending.by) == (1000, "us")

    asyncio.run(scenario())


def test_the_servers_close_is_the_servers() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            link = WireLink(server.url, Ears())
            await link.connect(SETUP)
            await server.connections[-1].close(1011, "Internal error encountered.")
            await until(lambda: link.ending)

            assert link.ending is not None
            assert (link.ending.code, link.ending.by) == (1011, "server")

    asyncio.run(scenario())


def test_what_is_not_the_protocol_ends_the_link_with_the_reason() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            link = WireLink(server.url, Ears())
            await link.connect(SETUP)
            await server.connections[-1].send(b'{"serverContent": 7}')
            await until(lambda: link.ending)

            assert link.ending is not None
            assert link.ending.error is not None
            assert "serverContent" in link.ending.error or "server_content" in link.ending.error
            link.abort()

    asyncio.run(scenario())


def test_a_healthy_link_has_nothing_unacknowledged_for_long() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            link = WireLink(server.url, Ears())
            await link.connect(SETUP)
            await until(lambda: link.unacknowledged(time.monotonic()) is None)
            link.abort()

    asyncio.run(scenario())


def handle() -> SessionResumption:

    return SessionResumption("handle-1")
