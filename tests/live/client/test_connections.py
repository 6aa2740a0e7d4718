import asyncio
from typing import Any

import pytest

from lab.live.client.lines import Line
from lab.live.client.link import Failed, Phase, Refused
from tests.live.client.acting import Acted, acting
from tests.live.client.fake import FakeServer, serving

DEADLINE_S = 5.0


async def begun(acted: Acted, **options: Any) -> tuple["asyncio.Future[Line]", Line]:
    """An attempt that is under way, and its line."""
    lines: list[Line] = []
    setup = acted.assistant.setup(None)
    attempt = asyncio.ensure_future(
        acted.assistant.connections.attempt(setup, timeout_s=60, begun=lines.append, **options)
    )
    await acted.events.wait_for("connecting")
    return attempt, lines[0]


async def reaches(line: Line, phase: Phase) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while line.link.phase is not phase:
            await asyncio.sleep(0.01)


class Mute:
    """Listens, and never says anything."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.begun.set()
        while await reader.read(1000):
            pass
        self.ended.set()
        writer.close()


@pytest.mark.parametrize(("scheme", "phase"), [("ws", Phase.UPGRADE), ("wss", Phase.CONNECT)])
def test_an_attempt_that_hangs_is_abandoned_at_once(scheme: str, phase: Phase) -> None:
    async def scenario() -> None:
        mute = Mute()
        async with await asyncio.start_server(mute.take, "127.0.0.1", 0) as server:
            url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with acting(url) as acted:
                attempt, line = await begun(acted)
                async with asyncio.timeout(DEADLINE_S):
                    await mute.begun.wait()
                    await reaches(line, phase)
                    acted.assistant.connections.abandon(line, 1000)
                    await asyncio.gather(attempt, return_exceptions=True)
                    await mute.ended.wait()

        assert acted.one("failed")["error"] == "abandoned"
        assert acted.one("failed")["phase"] == phase.value

    asyncio.run(scenario())


def test_an_attempt_that_is_abandoned_before_it_began_never_connects() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            attempt, line = await begun(acted)
            acted.assistant.connections.abandon(line, 1000)
            with pytest.raises(Failed):
                await attempt

            assert acted.named("connected") == []

    asyncio.run(scenario())


def test_an_attempt_that_waits_for_its_setup_is_abandoned_with_a_close() -> None:
    """The server may have taken the setup already: what is only forgotten stays attached there."""

    async def scenario() -> None:
        async with serving(FakeServer(hangs_in_setup=True)) as server, acting(server.url) as acted:
            attempt, line = await begun(acted)
            await reaches(line, Phase.SETUP)
            acted.assistant.connections.abandon(line, 1000)
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(Failed):
                    await attempt

            assert acted.one("failed")["error"] == "abandoned"
            assert acted.named("refused") == []

    asyncio.run(scenario())


def test_an_attempt_without_an_answer_fails_after_its_patience() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(hangs_in_setup=True)) as server, acting(server.url) as acted:
            with pytest.raises(Failed):
                await acted.assistant.connections.attempt(acted.assistant.setup(None), timeout_s=0.2)

            failed = acted.one("failed")
            assert (failed["error"], failed["phase"]) == ("no answer within 0.2 s", "setup")
            assert 0.2 <= failed["took_s"] < 1.0

    asyncio.run(scenario())


def test_attempts_are_numbered_whatever_becomes_of_them() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(status=503)) as server, acting(server.url) as acted:
            for _ in range(2):
                with pytest.raises(Refused):
                    await acted.assistant.connections.attempt(acted.assistant.setup(None), timeout_s=5)

            assert [event.fields["attempt"] for event in acted.named("refused")] == [1, 2]

    asyncio.run(scenario())


def test_a_ready_line_that_nobody_adopts_is_closed() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            line = await acted.assistant.connections.attempt(acted.assistant.setup(None), timeout_s=5)
            acted.assistant.connections.abandon(line, 1000)
            async with asyncio.timeout(DEADLINE_S):
                while not server.closes:
                    await asyncio.sleep(0.01)

            assert server.closes == [1000]
            assert acted.assistant.connections.current is None

    asyncio.run(scenario())


def test_a_servers_certificate_that_nobody_vouches_for_is_a_failed_attempt() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url.replace("ws:", "wss:")) as acted:
            with pytest.raises(Failed):
                await acted.assistant.connections.attempt(acted.assistant.setup(None), timeout_s=5)

            assert acted.one("failed")["phase"] == "connect"

    asyncio.run(scenario())


def test_a_defect_in_what_goes_on_beside_is_told_and_spoils_the_script() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)

            def broken(*_: object) -> None:
                raise KeyError("nobody foresaw it")

            acted.assistant.on_message = broken  # type: ignore[assignment, method-assign]
            await acted.run({"do": "watch", "for": 0.1})

            assert acted.one("defect")["error"] == "KeyError: 'nobody foresaw it'"
            assert acted.ok is False

    asyncio.run(scenario())
