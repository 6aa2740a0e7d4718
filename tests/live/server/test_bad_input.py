"""What is not the protocol ends its own connection, with the real service's code, and nobody else's session."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from lab.live.protocol.messages import Blob, Content, Part, ServerContent, ServerMessage
from lab.live.server import line as line_module
from lab.live.server import serving as serving_module
from lab.live.server.door import MOST_OPENING
from tests.live.server.harness import (
    HOST,
    PROMPT,
    SETUP,
    SOON_S,
    closed,
    hear,
    masked,
    parts,
    resume,
    say,
    served,
    session,
    until,
    upgrade,
    url,
    works,
)
from tests.live.session.fakes import FakeModel

MALFORMED = "Invalid JSON payload received. "
INVALID = "Request contains an invalid argument."
WRONG_RATE = {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=44100"}}}

WRONG: dict[str, tuple[object, str]] = {
    "text": ("hello", MALFORMED + "Unexpected token."),
    "binary": (b"\x80\x00\xff", MALFORMED + "Invalid UTF-8."),
    "an unknown message": ({"hello": {}}, MALFORMED + 'Unknown name "hello": Cannot find field.'),
    "a second setup": (SETUP, INVALID),
    "audio of another rate": (WRONG_RATE, INVALID),
    "a field's type": (
        {"toolResponse": {"functionResponses": "done"}},
        "Invalid value at 'tool_response.function_responses[0]' (TYPE_MESSAGE), \"done\"",
    ),
    "depth": ("[" * 200_000, MALFORMED + "Message too deep."),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_message_closes_with_1007_and_the_reason(case: str) -> None:
    message, reason = WRONG[case]

    async def scenario() -> None:
        async with served() as server, session(server) as (other, _), session(server) as (client, _):
            await say(client, message)
            assert await closed(client) == (1007, reason)
            assert await works(other)
            assert server.shell.defects == 0

    asyncio.run(scenario())


def test_anything_before_the_setup_closes_with_1007() -> None:
    async def scenario() -> None:
        async with served() as server, connect(url(server)) as client:
            await say(client, {"clientContent": {"turns": []}})
            assert await closed(client) == (1007, INVALID)

    asyncio.run(scenario())


def test_a_transparent_resumption_is_refused_as_the_study_saw_it() -> None:
    async def scenario() -> None:
        async with served() as server, connect(url(server)) as client:
            await say(client, {"setup": {"model": "m", "session_resumption": {"transparent": True}}})
            code, reason = await closed(client)
            assert code == 1007
            assert reason == (
                MALFORMED + "Unknown name \"transparent\" at 'setup.session_resumption': Cannot find field."
            )

    asyncio.run(scenario())


def test_a_huge_frame_is_refused_before_it_is_read() -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (other, _):
            reader, writer = await asyncio.open_connection(HOST, server.port("ws"))
            writer.write(upgrade(server))
            async with asyncio.timeout(5):
                await reader.readuntil(b"\r\n\r\n")
                # The head of a text frame, no more: opcode, mask bit and length.
                writer.write(b"\x81\xff" + (serving_module.MOST_MESSAGE + 1).to_bytes(8) + bytes(4))
                answer = await reader.read()
            writer.close()
            assert answer[:1] == b"\x88"
            assert int.from_bytes(answer[2:4]) == 1009
            assert await works(other)

    asyncio.run(scenario())


def test_a_message_in_endless_pieces_is_refused_at_the_same_size() -> None:
    async def pieces(client: ClientConnection) -> None:
        async def endless() -> AsyncIterator[str]:
            while True:
                yield "x" * 2**18

        with contextlib.suppress(Exception):
            await client.send(endless())

    async def scenario() -> None:
        async with served() as server, session(server) as (other, _), session(server) as (client, _):
            await pieces(client)
            assert (await closed(client))[0] == 1009
            assert await works(other)

    asyncio.run(scenario())


def test_a_result_for_a_call_that_nobody_made_is_noted_and_harms_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            await say(client, {"toolResponse": {"functionResponses": [{"id": "no such call", "name": "f"}]}})
            assert await works(client)

    asyncio.run(scenario())
    assert "no such call" in capsys.readouterr().out


def test_a_guess_and_a_handle_in_use_look_alike() -> None:
    """No oracle: neither the code, nor the reason, nor the wait tells handles that exist from others."""

    async def refusal(handle: str, port_url: str) -> tuple[float, tuple[int | None, str | None]]:
        async with connect(port_url) as client:
            began = asyncio.get_running_loop().time()
            await say(client, resume(handle))
            how = await closed(client)
            return asyncio.get_running_loop().time() - began, how

    async def scenario() -> None:
        async with served(PROMPT.with_(refusal_s="0.2")) as server, session(server) as (_, handle):
            guess = handle[:-1] + ("0" if handle[-1] != "0" else "1")
            took = [await refusal(named, url(server)) for named in (handle, guess, "", "x" * 10_000)[:2]]
            assert [how for _, how in took] == [(1011, "Internal error encountered.")] * 2
            assert all(0.2 <= took_s < 2 for took_s, _ in took)

    asyncio.run(scenario())


class Talker(FakeModel):
    """Says 64 kB at each prompt, at once."""

    def prompt(self, text: str, *, now: float) -> None:  # noqa: ARG002 - whatever is said
        blob = Blob(b"\0" * 2**16, "audio/pcm;rate=24000")
        content = ServerContent(model_turn=Content("model", (Part(inline_data=blob),)))
        self._plan.append((now, ServerMessage(server_content=content), False))


def test_a_client_that_never_reads_is_given_up_before_the_memory_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(line_module, "MOST_UNSENT", 2**20)

    async def scenario() -> None:
        async with served(made=parts(Talker)) as server, session(server) as (other, _):
            reader, writer = await asyncio.open_connection(HOST, server.port("ws"), limit=1)
            writer.write(upgrade(server))
            assert await reader.read(1)
            writer.write(masked(SETUP))
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
            for _ in range(200):
                writer.write(masked({"realtimeInput": {"text": "go on"}}))
                await asyncio.sleep(0)
            await until(lambda: len(server.shell.lines) == 1, "the deaf client is given up")
            assert await works(other)
            writer.close()

    asyncio.run(scenario())
    assert "octets unread by the client" in capsys.readouterr().out


def test_ten_thousand_half_open_handshakes_keep_nobody_out(tmp_path: Path) -> None:
    many = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < many + 2_000:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def knock(port: int, count: int) -> list[socket.socket]:
        """Connections that say nothing, made no faster than they are accepted."""
        made = []
        for _ in range(count):
            raw = socket.socket()
            raw.setblocking(False)
            await asyncio.get_running_loop().sock_connect(raw, (HOST, port))
            made.append(raw)
        return made

    async def scenario() -> None:
        async with served(tls_port=0, ca=tmp_path) as server, session(server) as (client, _):
            knocks = [
                await knock(server.port("ws") or 0, many // 2),
                await knock(server.port("wss") or 0, many // 2),
            ]
            try:
                assert await works(client)
                async with session(server) as (late, _):
                    assert await works(late)
                assert server.report()["opening"]["ws"] <= MOST_OPENING
                assert server.report()["opening"]["wss"] <= MOST_OPENING
                assert server.report()["dropped"]["ws"] >= many // 2 - MOST_OPENING
            finally:
                for raw in (*knocks[0], *knocks[1]):
                    raw.close()

    try:
        asyncio.run(scenario())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110 - a device
def test_a_full_disk_costs_lines_of_the_log_and_no_session(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with served(log=Path("/dev/full")) as server, session(server) as (client, _):
            assert await works(client)
            assert server.report()["log"]["lost"] > 3

    asyncio.run(scenario())
    assert capsys.readouterr().err.count("No space left on device") == 1


def test_a_defect_of_the_server_ends_the_connection_that_met_it(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(FakeModel):
        def prompt(self, text: str, *, now: float) -> None:  # noqa: ARG002 - at any time
            raise ZeroDivisionError(text)

    async def scenario() -> None:
        async with served(made=parts(Broken)) as server, session(server) as (other, _), session(server) as (client, _):
            await say(client, {"realtimeInput": {"text": "hello"}})
            assert (await closed(client))[0] == 1011
            assert await works(other)
            assert server.shell.defects == 1

    asyncio.run(scenario())
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_defect_that_a_timer_meets_is_told_and_the_timers_of_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Broken(FakeModel):
        def wake(self, *, now: float) -> list[ServerMessage]:
            if ("prompt", "hello") in self.told:
                raise ZeroDivisionError
            return super().wake(now=now)

    async def scenario() -> None:
        async with served(made=parts(Broken)) as server, session(server) as (other, _), session(server) as (client, _):
            await say(client, {"realtimeInput": {"text": "hello"}})
            await until(lambda: server.shell.defects == 1, "a defect")
            await say(other, {"realtimeInput": {"text": "book"}})
            async with asyncio.timeout(SOON_S):
                assert b"toolCall" in await other.recv(), "what a timer brings"

    asyncio.run(scenario())
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "opening",
    [
        b"\x16\x03\x01garbage\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        b"\0" * 9000,
    ],
)
def test_who_speaks_something_else_is_turned_away(opening: bytes) -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            reader, writer = await asyncio.open_connection(HOST, server.port("ws"))
            writer.write(opening)
            async with asyncio.timeout(5):
                with contextlib.suppress(ConnectionResetError):
                    while await reader.read(1000):
                        pass
            writer.close()
            assert await works(client)

    asyncio.run(scenario())


def test_frames_before_the_handshakes_answer_are_not_read() -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            reader, writer = await asyncio.open_connection(HOST, server.port("ws"))
            writer.write(upgrade(server) + masked(SETUP))
            async with asyncio.timeout(5):
                with contextlib.suppress(ConnectionResetError):
                    while await reader.read(1000):
                        pass
            writer.close()
            assert await works(client)

    asyncio.run(scenario())


def test_what_comes_after_a_refusal_is_not_read() -> None:
    async def scenario() -> None:
        async with served() as server, connect(url(server)) as client:
            await say(client, resume("nobody"))
            await say(client, "nonsense")
            assert await closed(client) == (1011, "Internal error encountered.")

    asyncio.run(scenario())


def test_a_session_without_a_handle_ends_with_its_connection() -> None:
    async def scenario() -> None:
        async with served() as server:
            async with connect(url(server)) as client:
                await say(client, {"setup": {"model": "m"}})
                assert "setupComplete" in await hear(client)
            await until(lambda: not server.shell.lines, "the close is seen")
            status = server.shell.house.status(now=server.shell.clock.now())
            assert [one.locked for one in status.sessions] == [False]

    asyncio.run(scenario())
