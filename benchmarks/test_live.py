"""The lab's own live sessions by the hundred: watchdogs that are in time, and what speech costs the server."""

import asyncio
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from websockets.asyncio.client import connect
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from benchmarks.figures import Figure, milliseconds, ratio
from benchmarks.live_crowd import (
    LATE_S,
    SESSIONS,
    Assistants,
    Bystander,
    Overrun,
    cheap,
    rank,
    server,
    status,
    stopped,
    waited_s,
)
from lab.live.client.options import endpoint
from lab.live.model.manner import Manner
from lab.live.model.speech import EndOfSpeech
from lab.live.model.utterance import utter
from lab.live.protocol import wire
from lab.live.protocol.messages import Blob, Content, Part, RealtimeInput, ServerContent, ServerMessage
from lab.live.voice.apart import Apart
from lab.live.voice.clips import load, texts
from lab.live.voice.recogniser import Recogniser

TENTH = 10
"""One session in so many speaks, all the time; the others are silent, but for their pings, as most are at any time."""

SECONDS = 10.0
SETTLES_S = 1.5

WATCHED = 100
"""Sessions with real watchdogs in the search; the rest is as cheap as it can be, so that the server is what is full."""

PROBE_S = 4.0
MOST = 9600


def test_three_hundred_assistants_lose_nothing_and_miss_nothing(figures: Callable[[Figure], None]) -> None:
    """Every session with the lab's link and watchdog; then the server stops, and every watchdog has to notice."""
    with server() as listening, closing(Assistants(listening["ws"], SESSIONS, SESSIONS // TENTH)) as assistants:
        time.sleep(SETTLES_S)
        before = status(listening)
        waiting_s = {pid: waited_s(pid) for pid in (assistants.pid, listening["pid"])}
        with Bystander() as bystander:
            seen = assistants.ask("measure", SECONDS)
        waits = [(waited_s(pid) - before_s) / seen["took_s"] for pid, before_s in waiting_s.items()]
        after = status(listening)
        with stopped(listening["pid"]):
            lost = assistants.ask("losses", 20.0)

    late_s, noticed_s = rank(seen["late_s"], 0.99), rank(lost["late_s"], 0.99)
    server_s = (after["process"]["cpu_s"] - before["process"]["cpu_s"]) / seen["took_s"]
    client_s = seen["cpu_s"] / seen["took_s"]
    assert (seen["ended"], after["defects"]) == (0, 0)
    figures(
        Figure(
            f"{SESSIONS} assistants of one server, a tenth of them speaking: the watchdogs",
            f"deadlines 99% within {late_s * 1e3:.3g} ms; {seen['alarms']} false alarms",
            f"an idle thread's 99% within {rank(bystander.late_s, 0.99) * 1e3:.3g} ms; "
            f"pongs 99% within {rank(seen['pongs_s'], 0.99) * 1e3:.3g} ms",
            f"{len(seen['late_s'])} deadlines",
            f"99% within {LATE_S * 1e3:.0f} ms, no alarm",
            late_s < LATE_S and seen["alarms"] == 0,
        )
    )
    figures(
        Figure(
            f"the same {SESSIONS} when their server stops",
            f"{len(lost['late_s'])} notice it, 99% within {noticed_s * 1e3:.3g} ms of the deadline",
            f"{statistics.median(lost['silent_s']):.2f} s of silence in the middle, "
            f"{max(lost['silent_s']):.2f} s at most",
            f"{len(lost['late_s'])} of {SESSIONS}",
            f"all of them, 99% within {LATE_S * 1e3:.0f} ms",
            len(lost["late_s"]) == SESSIONS and noticed_s < LATE_S,
        )
    )
    figures(
        Figure(
            f"the same {SESSIONS}: CPU",
            f"{server_s / SESSIONS * 1e3:.2f} ms/s per session in the server",
            f"{client_s / SESSIONS * 1e3:.2f} ms/s per session in the clients",
            f"{server_s:.0%} and {client_s:.0%} of a processor; "
            f"they waited for one {waits[1]:.0%} and {waits[0]:.0%} of the time",
        )
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """What so many sessions were like."""

    sessions: int
    held: bool
    late_s: float = 0.0
    """Of the watchdogs' deadlines, the 99th percentile."""

    pong_s: float = 0.0
    """The same of the pongs: a slow one makes its watchdog patient."""


def test_how_many_sessions_one_server_holds(figures: Callable[[Figure], None]) -> None:
    """Twice as many until a watchdog is late, alarmed or made patient; then once in between."""
    probes = [probe(2 * SESSIONS)]
    while probes[-1].held and probes[-1].sessions < MOST:
        probes.append(probe(2 * probes[-1].sessions))
    if not probes[-1].held:
        probes.append(probe(probes[-1].sessions * 3 // 4))
    held = max((each for each in probes if each.held), default=None, key=lambda each: each.sessions)
    failed = min((each.sessions for each in probes if not each.held), default=None)
    figures(
        Figure(
            "sessions that one server holds, a tenth of them speaking",
            f"{held.sessions if held else f'fewer than {min(each.sessions for each in probes)}'}",
            f"{failed if failed else 'more'} are too many"
            + (f"; deadlines 99% within {held.late_s * 1e3:.3g} ms, pongs {held.pong_s * 1e3:.3g} ms" if held else ""),
            f"{len(probes)} probes",
            f"{SESSIONS}",
            held is not None,
        )
    )


def probe(count: int) -> Probe:
    """Whether a fresh server holds so many: deadlines and pongs within a tenth of a second, no false alarm."""
    lasts_s = 60.0
    with server() as listening, cheap(listening["ws"], count - WATCHED, lasts_s):
        try:
            with closing(Assistants(listening["ws"], WATCHED, WATCHED // TENTH)) as assistants:
                time.sleep(SETTLES_S)
                seen = assistants.ask("measure", PROBE_S)
        except Overrun:
            return Probe(count, held=False)
    late_s, pong_s = rank(seen["late_s"], 0.99), rank(seen["pongs_s"], 0.99)
    well = seen["alarms"] == 0 and seen["ended"] == 0 and max(late_s, pong_s) < LATE_S
    return Probe(count, well, late_s, pong_s)


def test_a_decode_beside_the_sessions(figures: Callable[[Figure], None]) -> None:
    """One utterance after the other, in a thread and in another process in turns; how late a timer is meanwhile."""
    clips = [load(name) for name in texts()]
    inside, apart = Recogniser(), Apart()
    decode_s, thread_late_s, apart_late_s, wrong = [], [], [], 0
    with closing(apart):
        apart.words(bytes(3200))  # Its process begins.
        for clip in clips:
            began_s = time.process_time()
            heard, late_s = beside(partial(inside.words, clip.pcm))
            decode_s.append(time.process_time() - began_s)
            thread_late_s.append(late_s)
            told, late_s = beside(partial(apart.words, clip.pcm))
            apart_late_s.append(late_s)
            wrong += told != heard
    spoken_s = sum(clip.duration_s for clip in clips)
    began_s = time.process_time()
    for clip in clips:
        ear = EndOfSpeech()
        for chunk in clip.chunks():
            ear.feed(chunk)
    finding_s = time.process_time() - began_s

    assert wrong == 0
    figures(
        Figure(
            "an utterance recognised: CPU",
            milliseconds(decode_s),
            f"finding its end: {finding_s / len(clips) * 1e3:.3g} ms",
            f"{sum(decode_s) / spoken_s:.1%} of its duration",
        )
    )
    figures(
        Figure(
            "how late a timer is while an utterance is recognised",
            f"in another process: {milliseconds(apart_late_s)}",
            f"in a thread: {milliseconds(thread_late_s)}",
            f"{ratio(thread_late_s, apart_late_s):.0f} times as punctual",
            f"within {LATE_S * 1e3:.0f} ms",
            statistics.median(apart_late_s) < LATE_S,
        )
    )


def beside(decode: Callable[[], str]) -> tuple[str, float]:
    """What a thread hears, and how late this one's timers were at worst until then, seconds."""
    heard: list[str] = []
    worst_s = 0.0
    thread = threading.Thread(target=lambda: heard.append(decode()))
    thread.start()
    while thread.is_alive():
        due = time.monotonic() + 0.002
        time.sleep(0.002)
        worst_s = max(worst_s, time.monotonic() - due)
    return heard[0], worst_s


def test_compression_of_frames(figures: Callable[[Figure], None]) -> None:
    """It is not negotiated; what it would cost and save on both sides' speech."""
    with server() as listening:
        assert asyncio.run(negotiated(listening["ws"])) == []
    for side, payloads in speech().items():
        plain_s, deflated_s = [], []
        for _ in range(5):
            plain_s.append(cpu_of(partial(sent, payloads, [])) / len(payloads))
            deflated_s.append(cpu_of(partial(sent, payloads, deflating())) / len(payloads))
        octets = sent(payloads, deflating())
        figures(
            Figure(
                f"a message of speech written and read, {side}: CPU",
                f"plain, as negotiated: {milliseconds(plain_s)}",
                f"permessage-deflate: {milliseconds(deflated_s)}",
                f"{ratio(deflated_s, plain_s):.1f} times as fast; "
                f"deflated it has {octets / sum(map(len, payloads)):.0%} of the octets",
            )
        )


async def negotiated(port: int) -> list[Any]:
    """What a client that offers compression, as google-genai does, agrees on with the server."""
    async with connect(endpoint(f"ws://127.0.0.1:{port}"), proxy=None) as client:
        return list(client.protocol.extensions)


def speech() -> dict[str, list[bytes]]:
    """Messages of both sides' speech."""
    user = [RealtimeInput(audio=Blob(chunk, "audio/pcm;rate=16000")) for chunk in load("book").chunks()]
    manner = Manner()
    said = utter("Done: the 3 pm slot tomorrow is booked.", words_per_s=manner.words_per_s, chunk_s=manner.chunk_s)
    parts = [Part(inline_data=Blob(piece.pcm, "audio/pcm;rate=24000")) for piece in said.pieces]
    model = [ServerMessage(server_content=ServerContent(model_turn=Content("model", (part,)))) for part in parts]
    return {"the user's": [*map(wire.encode, user)], "the model's": [*map(wire.encode, model)]}


def deflating() -> list[PerMessageDeflate]:
    """Both ends of websockets' own compression, with its own settings."""
    return [PerMessageDeflate(False, False, 12, 12, {"memLevel": 5}) for _ in range(2)]


def sent(payloads: list[bytes], codecs: list[PerMessageDeflate]) -> int:
    """Write frames on one side and read them on the other; their octets on the way."""
    octets = 0
    for payload in payloads:
        frame = Frame(Opcode.BINARY, payload)
        for codec in codecs[:1]:
            frame = codec.encode(frame)
        octets += len(frame.data)
        for codec in codecs[1:]:
            frame = codec.decode(frame)
        read(bytes(frame.data))
    return octets


def read(payload: bytes) -> object:
    """A frame of either side."""
    return wire.parse_server(payload) if payload.startswith(b'{"serverContent"') else wire.parse_client(payload)


def cpu_of(act: Callable[[], object]) -> float:
    """Processor seconds."""
    began_s = time.process_time()
    act()
    return time.process_time() - began_s
