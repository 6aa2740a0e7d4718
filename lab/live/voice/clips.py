"""The shipped clips: what a user of the lab's scenarios says.

``scripts/clips.sh`` makes them, with espeak-ng, from the names and words in ``clips/clips.txt``.
"""

import functools
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.core.errors import UsageError
from lab.live.protocol.messages import AUDIO_RATE_IN

FOLDER = Path(__file__).parent / "clips"

LIST = "clips.txt"

WIDTH = 2
"""Octets per sample."""

CHUNK_S = 0.1
"""Seconds of audio per message, in real time (study)."""

PAUSE_S = 1.0
"""Silence that follows a clip, so that its end is heard: twice what ends an utterance."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A sentence, spoken."""

    name: str
    text: str
    """As it was given to the synthesiser."""

    pcm: bytes
    """16 kHz, 16 bits, one channel."""

    @property
    def duration_s(self) -> float:
        """Seconds, with a margin of 0.1 s at both ends."""
        return len(self.pcm) / WIDTH / AUDIO_RATE_IN

    def chunks(self, *, pause_s: float = PAUSE_S) -> Iterator[bytes]:
        """The clip as it is sent, one chunk per ``CHUNK_S``.

        Args:
            pause_s: Seconds of silence that follow it.
        """
        size = round(AUDIO_RATE_IN * CHUNK_S) * WIDTH
        pcm = self.pcm + bytes(round(AUDIO_RATE_IN * pause_s) * WIDTH)
        yield from (pcm[at : at + size] for at in range(0, len(pcm), size))


@functools.cache
def texts() -> dict[str, str]:
    """The words of every clip, by its name."""
    lines = (FOLDER / LIST).read_text(encoding="utf-8").splitlines()
    return dict(line.split("|", 1) for line in lines)


@functools.cache
def load(name: str) -> Clip:
    """A clip.

    Args:
        name: One of ``texts()``.

    Raises:
        UsageError: no clip has that name.
    """
    if name not in texts():
        raise UsageError(f"There is no clip {name!r}.", fix=f"Use one of {', '.join(texts())}.")
    with wave.open(str(FOLDER / f"{name}.wav"), "rb") as file:
        return Clip(name, texts()[name], file.readframes(file.getnframes()))
