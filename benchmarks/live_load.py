"""Many live sessions from one process, as cheap as they can be: ready-made frames, and pings that carry their instant.

``python -m benchmarks.live_load PORT SESSIONS MODE SECONDS`` prints a JSON object. The modes: ``idle`` (pings every
0.5 s alone), ``talk`` (a booking and a question, typed), ``speech`` (audio from each, in real time), ``tenth`` (audio
from every tenth).
"""

import asyncio
import base64
import itertools
import json
import math
import struct
import sys
import time
from array import array

from lab.live.protocol.messages import AUDIO_RATE_IN
from lab.live.protocol.paths import developer

CHUNK_S = 0.1
PING_EVERY = 5
"""Chunks between two pings: the watchdog's 0.5 s."""

BOOK_AT, ASK_AT = 10, 40
"""Chunks after the start."""

_MARK = b"PING"
_HEAD = b"\x8a\x0c" + _MARK
_LETS_GO_S = 1.5


def frame(opcode: int, payload: bytes) -> bytes:
    """A client's frame; its mask is zero."""
    size = len(payload)
    head = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([0x80 | opcode]) + head + bytes(4) + payload


def text(message: object) -> bytes:
    """A message in a text frame."""
    return frame(1, json.dumps(message).encode())


SETUP = text({"setup": {"model": "m", "tools": [{"functionDeclarations": [{"name": "book_slot"}]}]}})
TONE = array("h", [round(3000 * math.sin(at * 0.3)) for at in range(round(AUDIO_RATE_IN * CHUNK_S))]).tobytes()
SPEECH = text({"realtimeInput": {"audio": {"data": base64.b64encode(TONE).decode(), "mimeType": "audio/pcm"}}})
TYPED = {
    at: text({"realtimeInput": {"text": words}})
    for at, words in ((BOOK_AT, "Book me the 3pm slot tomorrow, please."), (ASK_AT, "Did you book it?"))
}


class Session(asyncio.Protocol):
    """One session's client."""

    def __init__(self) -> None:
        self.ready = False
        self.called = 0
        self.ended = False
        self.pongs: list[float] = []
        """How long each took, seconds."""
        self._upgraded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the upgrade."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(
            f"GET {developer()} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Look for what matters; frames are small enough not to be cut, or come again."""
        if not self._upgraded:
            self._upgraded = True
            self.transport.write(SETUP)
        self.ready = self.ready or b"setupComplete" in data
        self.called += data.count(b"toolCall")
        at = data.find(_HEAD)
        if at >= 0 and len(data) >= at + 14:
            self.pongs.append(time.monotonic() - struct.unpack(">d", data[at + 6 : at + 14])[0])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        """Be over."""
        self.ended = True


async def load(port: int, count: int, mode: str, seconds: float) -> dict[str, object]:
    """Talk for a while; each session has its own place within the tenth of a second."""
    loop = asyncio.get_running_loop()
    sessions = [(await loop.create_connection(Session, "127.0.0.1", port))[1] for _ in range(count)]
    await asyncio.sleep(_LETS_GO_S)
    began, late = time.monotonic(), []
    for step in itertools.count():
        due = began + step * CHUNK_S / count
        if due >= began + seconds:
            break
        if (left_s := due - time.monotonic()) > 0:
            await asyncio.sleep(left_s)
            late.append(time.monotonic() - due)
        elif step % 50 == 0:
            await asyncio.sleep(0)
        number = step % count
        speaks = mode == "speech" or (mode == "tenth" and number % 10 == 0)
        _act(sessions[number], step // count, speaks=speaks, types=mode == "talk")
    await asyncio.sleep(CHUNK_S)
    pongs = sorted(pong for session in sessions for pong in session.pongs)
    return {
        "ready": sum(session.ready for session in sessions),
        "ended": sum(session.ended for session in sessions),
        "called": sum(session.called for session in sessions),
        "pongs": len(pongs),
        "pong_p50_s": pongs[len(pongs) // 2],
        "pong_p99_s": pongs[len(pongs) * 99 // 100],
        "own_late_p99_s": sorted(late)[len(late) * 99 // 100] if late else None,
    }


def _act(session: Session, chunk: int, *, speaks: bool, types: bool) -> None:
    if speaks:
        session.transport.write(SPEECH)
    if types and chunk in TYPED:
        session.transport.write(TYPED[chunk])
    if chunk % PING_EVERY == 0:
        session.transport.write(frame(9, _MARK + struct.pack(">d", time.monotonic())))


if __name__ == "__main__":
    port, count, mode, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(load(int(port), int(count), mode, float(seconds)))) + "\n")
