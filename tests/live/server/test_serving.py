"""Clients on loopback sockets are served as the sessions want it, over ws and wss."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from lab.live.protocol.messages import SessionResumption, Setup
from lab.live.protocol.paths import developer
from lab.live.server.serving import Serving
from lab.live.timelapse import Lapse
from tests.live.server.harness import (
    HOST,
    PROMPT,
    SETUP,
    SOON_S,
    closed,
    hear,
    masked,
    reset,
    resume,
    say,
    served,
    session,
    state,
    until,
    upgrade,
    url,
)

BUSY = (1011, "Internal error encountered.")


def test_a_session_is_set_up_over_ws() -> None:
    async def scenario() -> None:
        async with served() as server, connect(url(server)) as client:
            await say(client, SETUP)
            assert await hear(client) == {"setupComplete": {"sessionId": "session-1"}}
            update = (await hear(client))["sessionResumptionUpdate"]
            assert update["resumable"] is True
            assert len(update["newHandle"]) == 36

    asyncio.run(scenario())


def test_a_session_is_set_up_over_wss_by_a_client_that_checks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tls_port=0, ca=tmp_path / "ca") as server:
            trust = ssl.create_default_context(cafile=str(server.authority))
            async with connect(f"wss://localhost:{server.port('wss')}{developer('v1')}", ssl=trust) as client:
                await say(client, SETUP)
                assert "setupComplete" in await hear(client)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "path",
    [
        "/" + developer("v9"),
        "/some/prefix" + developer() + "Constrained?key=k",
        "/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent",
        "/ws/google.firebase.vertexai.v1beta.GenerativeService/BidiGenerateContent",
    ],
)
def test_every_path_that_clients_ask_for_is_served(path: str) -> None:
    async def scenario() -> None:
        async with served() as server, connect(url(server, path)) as client:
            await say(client, SETUP)
            assert "setupComplete" in await hear(client)

    asyncio.run(scenario())


def test_no_other_path_is_and_the_answer_names_one_that_is() -> None:
    async def scenario() -> None:
        async with served() as server:
            with pytest.raises(InvalidStatus, match="404") as refused:
                await connect(url(server, "/chat"))

            assert developer() in refused.value.response.body.decode()

    asyncio.run(scenario())


def _close_frame(client: ClientConnection) -> None:
    client.protocol.send_close(1000)
    client.send_data()


def _fin(client: ClientConnection) -> None:
    client.transport.write_eof()


@pytest.mark.parametrize(
    ("leave", "how"), [(_close_frame, "close frame"), (_fin, "FIN"), (reset, "RST")], ids=["close frame", "FIN", "RST"]
)
def test_a_resume_is_refused_while_attached_and_shortly_after_an_idle_end(
    leave: Callable[[ClientConnection], None], how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, handle):
            async with connect(url(server)) as second:
                await say(second, resume(handle))
                assert await closed(second) == BUSY
            leave(client)
            settled = {"close frame": "free"}.get(how, "settling")  # somebody had been refused
            await until(lambda: state(server) == settled, f"the {how} is seen")
            await until(lambda: state(server) == "free", "it has settled")
            async with connect(url(server)) as third:
                await say(third, resume(handle))
                assert "setupComplete" in await hear(third)

    asyncio.run(scenario())
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert next(event["how"] for event in events if event["event"] == "detach" and event["session"]) == how


def test_the_other_end_is_named_where_the_peer_is_reset_over_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with served(tls_port=0, ca=tmp_path / "ca") as server:
            trust = ssl.create_default_context(cafile=str(server.authority))
            client = await connect(f"wss://{HOST}:{server.port('wss')}{developer()}", ssl=trust)
            await say(client, SETUP)
            assert "setupComplete" in await hear(client)
            reset(client)
            await until(lambda: not server.shell.lines, "the reset is seen")

    asyncio.run(scenario())
    assert '"how": "RST"' in capsys.readouterr().out


def test_a_result_right_before_a_close_is_still_taken() -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            client.protocol.send_text(b'{"realtimeInput":{"text":"book it"}}')
            client.protocol.send_close(1000)
            client.transport.write(b"".join(client.protocol.data_to_send()))  # one segment
            await until(lambda: not server.shell.lines, "the close is seen")
            status = server.shell.house.status(now=server.shell.clock.now())
            assert [turn.text for turn in status.sessions[0].transcript] == ["book it"]

    asyncio.run(scenario())


def test_a_prompt_becomes_a_call_and_speech_is_recognised() -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            server.shell.lapse(Lapse(since=asyncio.get_running_loop().time(), factor=50))
            for data in ("Ym9vaw==", "AAAAAAAA"):  # "book", and silence
                await say(client, {"realtimeInput": {"audio": {"data": data, "mimeType": "audio/pcm"}}})
            call = (await hear(client))["toolCall"]["functionCalls"][0]
            assert call["name"] == "book_slot"
            await say(client, {"toolResponse": {"functionResponses": [{"id": call["id"], "name": "book_slot"}]}})
            assert "outputTranscription" not in (await hear(client))["serverContent"]  # nobody asked for it

    asyncio.run(scenario())


def test_time_that_runs_faster_wakes_who_waits() -> None:
    async def scenario() -> None:
        profile = PROMPT.with_(silence_close_s="480")
        async with served(profile) as server, session(server) as (client, _):
            server.shell.lapse(Lapse(since=asyncio.get_running_loop().time(), factor=10_000))
            assert await closed(client) == BUSY
            assert state(server) in {"dead", "ended"}

    asyncio.run(scenario())


def test_a_pong_can_be_slow() -> None:
    async def scenario() -> None:
        async with served(PROMPT.with_(pong_delay_s="0.3")) as server, session(server) as (client, _):
            latency = await (await client.ping())
            assert 0.3 <= latency < 3
            assert await closing_handshake_s(client) < 0.3

    async def closing_handshake_s(client: ClientConnection) -> float:
        began = asyncio.get_running_loop().time()
        await client.close()
        return asyncio.get_running_loop().time() - began

    asyncio.run(scenario())


def test_the_server_sends_nothing_to_an_idle_client() -> None:
    async def scenario() -> None:
        async with served() as server, session(server) as (client, _):
            line = next(iter(server.shell.lines.values()))
            raw: socket.socket = line.transport.get_extra_info("socket")
            assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
            assert line.ping_interval is None
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.recv(), 0.5)

    asyncio.run(scenario())


def test_a_limit_can_speak_at_the_upgrade() -> None:
    async def scenario() -> None:
        async with served(PROMPT.with_(concurrent_limit="1", limit_refusal="429")) as server, session(server):
            with pytest.raises(InvalidStatus, match="429"):
                await connect(url(server))

    asyncio.run(scenario())


def test_the_server_says_goodbye() -> None:
    async def scenario() -> tuple[int | None, str | None]:
        async with served() as server:
            client = await connect(url(server), ping_interval=None)
            await say(client, SETUP)
            await hear(client)
        return await closed(client)

    assert asyncio.run(scenario()) == (1001, "")


def test_a_client_that_is_gone_does_not_keep_the_server_from_ending() -> None:
    async def scenario() -> None:
        async with served() as server:
            raw = await half_open(server)
        raw.close()

    async def half_open(server: Serving) -> socket.socket:
        raw = socket.create_connection((HOST, server.port("ws") or 0))
        raw.sendall(upgrade(server))
        await until(lambda: bool(server.shell.lines), "the WebSocket is open")
        return raw

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_over_tls_the_close_that_refuses_takes_53_octets_as_the_study_saw(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with served(tls_port=0, ca=tmp_path / "ca") as server:
            trust = ssl.create_default_context(cafile=str(server.authority))
            raw = await asyncio.to_thread(socket.create_connection, (HOST, server.port("wss") or 0))
            with raw:
                return await asyncio.to_thread(refused, raw, trust, server)

    def refused(raw: socket.socket, trust: ssl.SSLContext, server: Serving) -> bytes:
        """The last octets that came before the end, as they were on the wire."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trust.wrap_bio(incoming, outgoing, server_hostname=HOST)
        raw.settimeout(SOON_S)
        came = [b""]

        def go_on(act: Callable[[], Any]) -> Any:
            while True:
                try:
                    return act()
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    came.append(raw.recv(65536))
                    incoming.write(came[-1])

        go_on(client.do_handshake)
        client.write(upgrade(server))
        assert b"101" in go_on(lambda: client.read(4096))
        client.write(masked(resume("nobody")))
        frame = go_on(lambda: client.read(4096))
        assert frame[:4] == bytes([0x88, 29]) + (1011).to_bytes(2)
        return came[-1]

    record = asyncio.run(scenario())
    first_record = 5 + int.from_bytes(record[3:5])
    assert first_record == 53


def test_sessions_many_at_once_are_told_without_holding_up_the_loop() -> None:
    """A status of 300 sessions takes a small part of what a watchdog would notice."""

    async def scenario() -> float:
        async with served() as server:
            for number in range(300):
                server.shell.house.opened(1000 + number, now=0)
                setup = Setup("m", session_resumption=SessionResumption())
                server.shell.house.receive(1000 + number, setup, now=0)
            began = time.process_time()
            assert len(server.report()["sessions"]) == 300
            return time.process_time() - began

    assert asyncio.run(scenario()) < 0.1
