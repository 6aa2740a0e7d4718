"""The user's voice: clips spoken in real time, and what of it a loss may have swallowed, to be said again."""

import math
from collections import deque
from collections.abc import Callable

from lab.live.client.events import Events
from lab.live.clock import Clock
from lab.live.protocol.messages import AUDIO_RATE_IN, Blob, RealtimeInput
from lab.live.voice.clips import CHUNK_S, Clip

KEPT_S = 30.0
"""How much speech is kept for a replay, seconds; a gap that lasts longer loses its beginning."""

_KEPT = round(KEPT_S / CHUNK_S)

MIME_TYPE = f"audio/pcm;rate={AUDIO_RATE_IN}"


class Voice:
    """Speaks, and types.

    Args:
        clock: Session time.
        events: Where it is told what was said.
        send: Sends a message on the connection in use; False where there is none.
        replay: Whether what may not have arrived is kept over a gap, and said again after it.
    """

    def __init__(self, clock: Clock, events: Events, send: Callable[[RealtimeInput], bool], *, replay: bool) -> None:
        self._clock = clock
        self._events = events
        self._send = send
        self._replay = replay
        self._recent: deque[tuple[float, RealtimeInput]] = deque(maxlen=_KEPT)
        """What was sent, when by session time, and has not arrived as far as anybody knows."""

        self._kept: deque[RealtimeInput] = deque(maxlen=_KEPT)
        """What no connection has carried."""

        self.lost_s = 0.0
        """Speech for which there was no connection, and that was not kept, seconds."""

    async def say(self, clip: Clip) -> None:
        """Speak a clip, then silence, in real time by session time."""
        began, spoken = self._clock.now(), math.ceil(clip.duration_s / CHUNK_S)
        for number, piece in enumerate(clip.chunks(), 1):
            await self._clock.sleep_until(began + number * CHUNK_S)  # A chunk exists once it has been spoken.
            self._put(RealtimeInput(audio=Blob(piece, MIME_TYPE)))
            if number == spoken:
                self._events.tell("said", clip=clip.name, text=clip.text)

    def type(self, text: str) -> None:
        """Type something."""
        self._put(RealtimeInput(text=text))

    def arrived(self, until: float) -> None:
        """All that was sent up to this instant of session time has arrived."""
        while self._recent and self._recent[0][0] <= until:
            self._recent.popleft()

    def on_lost(self) -> None:
        """The connection is lost, and with it what has not arrived."""
        if self._replay:
            self._kept.extend(message for _, message in self._recent)
        self._recent.clear()

    def on_live(self) -> None:
        """A connection is there again: say what was kept, as fast as it goes."""
        if self._kept:
            seconds = round(sum(_seconds(message) for message in self._kept), 3)
            texts = [message.text for message in self._kept if message.text is not None]
            self._events.tell("replayed", seconds=seconds, texts=texts)
        kept, self._kept = list(self._kept), deque(maxlen=_KEPT)
        for message in kept:
            self._put(message)

    def _put(self, message: RealtimeInput) -> None:
        if self._send(message):
            self._recent.append((self._clock.now(), message))
        elif self._replay:
            self._kept.append(message)
        else:
            self.lost_s += _seconds(message)
            if message.text is not None:
                self._events.tell("not_sent", text=message.text)


def _seconds(message: RealtimeInput) -> float:
    return 0.0 if message.audio is None else len(message.audio.data) / 2 / AUDIO_RATE_IN
