#!/usr/bin/env python3
"""Claim: after a silent loss a Live session cannot be resumed as long as its old connection has not been closed.

A client connects, is answered, and idles. Then its path goes dark: nothing is closed. It finds out by its own pings,
and tries to resume with the session's handle, on new connections that pass. Each attempt is refused with 1011
``Internal error encountered.``, which is also what a dead handle gives: the server still holds the old connection, and
holds it for minutes. That the path is back does not help either. A close on the old connection does, at once.

    python repro/resume_lockout.py        half a minute, no root needed, no key: the lab's session server, real packets

With a key the same client talks to the service itself:

    GEMINI_API_KEY=... python repro/resume_lockout.py

From here no packets can be dropped on the way there. So the first connection goes by a relay in this program that stops
passing octets: both kernels go on acknowledging, but the service hears nothing and sees nothing closed. That shows the
lock; it shows nothing of TCP, of which ``lab run --backend docker --uplink HOST:443`` shows the client's half. The two
variables that ``lab live serve`` prints lead here too, without a key. GEMINI_MODEL names another model.

Needs websockets, and the lab where none of this is set.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

SERVICE = "https://generativelanguage.googleapis.com"
PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
HELLO = "Hi, can you hear me?"
PING_EVERY_S, LOST_AFTER_S = 0.5, 2.0
ATTEMPTS, PATIENCE_S = 4, 10.0


async def session(base: str, key: str, handle: str | None, **way: object) -> tuple[ClientConnection, str]:
    """A connection whose setup was answered, and the session's handle."""
    url = base.rstrip("/").replace("http", "ws", 1) + PATH
    ws = await connect(url, additional_headers={"x-goog-api-key": key}, ping_interval=None, max_size=None, **way)
    resumption = {} if handle is None else {"handle": handle}
    model = "models/" + os.environ.get("GEMINI_MODEL", "gemini-3.8-live")
    setup = {"model": model, "generationConfig": {"responseModalities": ["AUDIO"]}, "sessionResumption": resumption}
    await ws.send(json.dumps({"setup": setup}))
    while True:
        update = json.loads(await ws.recv()).get("sessionResumptionUpdate", {})
        if update.get("newHandle"):
            return ws, update["newHandle"]


async def exchange(ws: ClientConnection) -> None:
    """One turn of the user's and one of the model's."""
    turn = {"role": "user", "parts": [{"text": HELLO}]}
    await ws.send(json.dumps({"clientContent": {"turns": [turn], "turnComplete": True}}))
    while not json.loads(await ws.recv()).get("serverContent", {}).get("turnComplete"):
        pass


async def dark(ws: ClientConnection) -> "asyncio.Future[float]":
    """Ping until no pong has come for two seconds; the pong that is still awaited."""
    while True:
        pong = await ws.ping()
        try:
            await asyncio.wait_for(asyncio.shield(pong), LOST_AFTER_S)
        except TimeoutError:
            return pong
        await asyncio.sleep(PING_EVERY_S)


async def resume(base: str, key: str, handle: str) -> bool:
    """One attempt on a connection of its own, and what came of it, printed."""
    began = time.monotonic()
    try:
        ws, _ = await asyncio.wait_for(session(base, key, handle), PATIENCE_S)
    except ConnectionClosed as error:
        said = "no close frame" if error.rcvd is None else f"{error.rcvd.code} {error.rcvd.reason}"
        print(f"resume: refused after {time.monotonic() - began:.2f} s, {said}")
        return False
    except TimeoutError:
        print(f"resume: not answered within {PATIENCE_S:g} s")
        return False
    print(f"resume: accepted after {time.monotonic() - began:.2f} s")
    await ws.close()
    return True


async def client(base: str, key: str, relay: "Relay | None" = None) -> bool:
    """The story, printed as it happens; whether the claim holds."""
    way = {} if relay is None else {"host": "127.0.0.1", "port": await relay.start()}
    old, handle = await session(base, key, None, **way)
    await exchange(old)
    print("idle: answered, and silent from here on")
    if relay is not None:
        relay.passes.clear()
    pong = await dark(old)
    print(f"lost: no pong for {LOST_AFTER_S} s")
    in_the_dark = []
    for _ in range(ATTEMPTS):
        next_at = time.monotonic() + 1.0
        in_the_dark.append(await resume(base, key, handle))
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))
    print("tried: now the path may come back")
    if relay is not None:
        relay.passes.set()
    await asyncio.wait_for(pong, 60)
    print("path back: the old connection has answered")
    by_itself = await resume(base, key, handle)
    began = time.monotonic()
    await old.close()
    print(f"closed: the old connection, answered after {(time.monotonic() - began) * 1000:.0f} ms")
    return not any(in_the_dark) and not by_itself and await resume(base, key, handle)


class Relay:
    """Passes octets between one connection here and the service, while ``passes`` is set."""

    def __init__(self, host: str, port: int) -> None:
        self._far = (host, port)
        self._tasks: list[asyncio.Task[None]] = []
        self.passes = asyncio.Event()
        self.passes.set()

    async def start(self) -> int:
        """Listen on loopback; the port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._far)
        self._tasks += [asyncio.create_task(self._pass(*one)) for one in ((reader, far_writer), (far_reader, writer))]

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while octets := await reader.read(65536):
                await self.passes.wait()
                writer.write(octets)
        await self.passes.wait()
        writer.close()


def with_packets() -> bool:
    """The client in a testbed with the lab's session server, its first flow cut and healed in the router."""
    from lab import blackhole

    folder = Path(tempfile.mkdtemp(prefix="resume-lockout-"))
    record = blackhole(
        server=[sys.executable, "-m", "lab.live.server", "--port", "8765"],
        client=[sys.executable, "-u", __file__, "http://server:8765"],
        port=8765,
        flow="first",
        noticed="lost:",
        cut_when="^idle:",
        heal_when="^tried:",
        until="^claim",
        watch_s=60.0,
        out=folder,
    )
    lines = [line.split(" ", 2)[2] for line in (folder / "client.log").read_text().splitlines()]
    print(*lines, sep="\n")
    dropped = record.fault.matched
    print(f"{record.outcome.value}: dark for {record.fault.healed_s or 0:.1f} s, dropped {dropped.forward} forward")
    print(record.reason or f"everything of the run is in {folder}/")
    return record.outcome.value == "confirmed" and lines[-1:] == ["claim holds"]


def main() -> int:
    """Run it, and say whether the claim holds."""
    if len(sys.argv) > 1:
        held = asyncio.run(client(sys.argv[1], "any"))
        print("claim holds" if held else "claim fails")
    elif os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_GEMINI_BASE_URL"):
        base, key = os.environ.get("GOOGLE_GEMINI_BASE_URL") or SERVICE, os.environ.get("GEMINI_API_KEY") or "any"
        parts = urlsplit(base)
        relay = Relay(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        held = asyncio.run(client(base, key, relay))
        print("claim holds" if held else "claim fails")
    else:
        held = with_packets()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
