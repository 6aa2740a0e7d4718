"""The user's voice: clips spoken in real time, and what of it a loss may have swallowed, to be said again."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.live.client.events import Events
from lab.live.clock import Clock
from lab.live.protocol.messages import AUDIO_RATE_IN, Blob, RealtimeInput

CHUNK_S = 0.1
"""study.md: 100 ms of audio per message."""

CHUNK_BYTES = int(CHUNK_S * AUDIO_RATE_IN) * 2

TAIL_S = 1.0
"""Silence after a clip, by which the server hears that the speech has ended; a microphone would give it by itself."""

KEPT_S = 30.0
"""How much speech is kept for a replay, seconds; a gap that lasts longer loses its beginning."""

MIME_TYPE = f"audio/pcm;rate={AUDIO_RATE_IN}"


@dataclass(frozen=True, slots=True)
class Clip:
    """Something to say."""

    name: str
    text: str
    """Its words."""

    pcm: bytes
    """16 kHz, 16 bits, one channel."""


class Voice:
    """Speaks.

    Args:
        clock: Session time.
        events: Where it is told what was said.
        send: Sends a message on the connection in use; False where there is none.
        replay: Whether what is said during a gap is kept, and said again after it.
    """

    def __init__(self, clock: Clock, events: Events, send: Callable[[RealtimeInput], bool], *, replay: bool) -> None:
        self._clock = clock
        self._events = events
        self._send = send
        self._replay = replay
        self._recent: deque[tuple[float, bytes]] = deque(maxlen=round(KEPT_S / CHUNK_S))
        """When each chunk was sent, session time."""

        self._kept: deque[bytes] = deque(maxlen=round(KEPT_S / CHUNK_S))
        """What no connection has carried."""

        self.dropped_s = 0.0
        """Speech that was lost for good, seconds."""

    async def say(self, clip: Clip) -> None:
        """Speak a clip, then silence, in real time by session time."""
        began = self._clock.now()
        pieces = list(_pieces(clip.pcm))
        for number, piece in enumerate(pieces + [bytes(CHUNK_BYTES)] * round(TAIL_S / CHUNK_S), 1):
            await self._clock.sleep_until(began + number * CHUNK_S)  # A chunk exists once it has been spoken.
            self._put(piece)
            if number == len(pieces):
                self._events.tell("said", clip=clip.name, text=clip.text)

    def on_lost(self, since: float) -> None:
        """The connection is lost: what was sent since this instant of session time may not have arrived."""
        if self._replay:
            self._kept.extend(piece for at, piece in self._recent if at >= since)
        self._recent.clear()

    def on_live(self) -> None:
        """A connection is there again: say what was kept, as fast as it goes."""
        if self._kept:
            self._events.tell("replayed", seconds=round(len(self._kept) * CHUNK_S, 3))
        while self._kept:
            self._send(_audio(self._kept.popleft()))

    def _put(self, piece: bytes) -> None:
        if self._send(_audio(piece)):
            self._recent.append((self._clock.now(), piece))
        elif self._replay:
            self._kept.append(piece)
        else:
            self.dropped_s += CHUNK_S


def _pieces(pcm: bytes) -> Iterator[bytes]:
    for start in range(0, len(pcm), CHUNK_BYTES):
        yield pcm[start : start + CHUNK_BYTES].ljust(CHUNK_BYTES, b"\0")


def _audio(pcm: bytes) -> RealtimeInput:
    return RealtimeInput(audio=Blob(pcm, MIME_TYPE))
