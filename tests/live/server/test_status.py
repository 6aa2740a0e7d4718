"""The status port tells what the sessions are, and does what it is asked."""

import asyncio
import json
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from lab.live.server.serving import Serving
from tests.live.server.harness import HOST, closed, hear, resume, say, served, session, state, until, url


async def ask(server: Serving, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{HOST}:{server.status_port}{path}", data, headers)

    def fetch() -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read())

    return await asyncio.to_thread(fetch)


def test_sessions_locks_and_lateness_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(status_port=0, log=tmp_path / "log") as server, session(server) as (client, handle):
            await say(client, {"realtimeInput": {"text": "book"}})
            await hear(client)
            status, told = await ask(server, "/status")
            assert status == 200
            (one,) = told["sessions"]
            assert (one["state"], one["locked"], one["handle"]) == ("attached", True, handle[:8])
            assert one["pending"] == [{"id": "c1", "name": "book_slot", "args": {"slot": "tomorrow 3pm"}}]
            assert one["transcript"][0]["text"] == "book"
            assert told["lines"][0]["kind"] == "developer"
            assert told["late"]["looks"] > 0
            assert handle not in json.dumps(told)
            assert await ask(server, "/healthz") == (200, {"ok": True})

    asyncio.run(scenario())


def test_a_lapse_hurries_session_time_from_its_instant_on() -> None:
    async def scenario() -> None:
        async with served(status_port=0) as server:
            since = time.monotonic()
            status, told = await ask(server, "/lapse", {"since": since, "factor": 1000})
            assert status == 200
            assert told["factor"] == 1000
            told = (await ask(server, "/status"))[1]["time"]
            assert abs(since + (told["wall"] - since) * 1000 - told["session"]) < 50
            assert (await ask(server, "/lapse", {"factor": 1}))[0] == 200

    asyncio.run(scenario())


def test_a_connection_is_closed_and_a_session_dismissed() -> None:
    async def scenario() -> None:
        async with served(status_port=0) as server, session(server) as (client, handle):
            answer = await ask(server, "/close", {"session": "session-1", "code": 1001, "reason": "test"})
            assert answer[0] == 200
            assert await closed(client) == (1001, "test")
            await until(lambda: state(server) == "free", "the close is answered")
            assert (await ask(server, "/close", {"session": "session-1", "dismiss": True}))[0] == 200
            async with connect(url(server)) as second:
                await say(second, resume(handle))
                assert await closed(second) == (1011, "Internal error encountered.")

    asyncio.run(scenario())


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    async def scenario() -> None:
        async with served(status_port=0) as server:
            for path, body, status in (
                ("/lapse", {"factor": -1}, 400),
                ("/lapse", {"factor": "fast"}, 400),
                ("/lapse", {"since": 0, "factor": True}, 400),
                ("/lapse", b"hello", 400),
                ("/lapse", b"[" * 20_000, 400),
                ("/lapse", [], 400),
                ("/close", {"session": "nobody"}, 404),
                ("/close", {"session": "nobody", "code": 999}, 400),
                ("/other", {}, 404),
                ("/other", None, 404),
            ):
                answer = await ask(server, path, body)
                assert answer[0] == status, (path, body, answer)
                assert answer[1]["error"]
            assert (await ask(server, "/lapse", {"factor": 2}, Origin="http://page.example"))[0] == 403
            assert server.shell.clock.factor == 1

    asyncio.run(scenario())


def test_it_listens_on_both_families_where_no_address_is_named() -> None:
    async def scenario() -> None:
        async with served(status_port=0, status_host=None) as server:
            for host in ("127.0.0.1", "[::1]") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
                url = f"http://{host}:{server.status_port}/healthz"
                assert json.loads(await asyncio.to_thread(fetch, url)) == {"ok": True}

    def fetch(url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: bytes = answer.read()
            return found

    asyncio.run(scenario())


def test_bookings_are_shown_where_there_are_any(tmp_path: Path) -> None:
    path = tmp_path / "bookings"

    async def scenario() -> None:
        async with served(status_port=0, bookings=path) as server:
            assert (await ask(server, "/status"))[1]["bookings"]["count"] is None
            with sqlite3.connect(path) as opened:
                opened.execute("CREATE TABLE bookings (key TEXT, confirmation_id TEXT)")
                opened.execute("INSERT INTO bookings VALUES ('tomorrow 15:00', 'BK-1001')")
            opened.close()
            assert (await ask(server, "/status"))[1]["bookings"] == {
                "count": 1,
                "rows": [{"key": "tomorrow 15:00", "confirmation_id": "BK-1001"}],
            }

    asyncio.run(scenario())
