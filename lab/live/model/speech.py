"""When speech begins and ends: a detector that knows only how loud it is."""

from lab.live.protocol.messages import AUDIO_RATE_IN

WIDTH = 2
"""Octets per sample."""

FRAME_S = 0.02
"""What is judged at a time; usual for speech."""

LOUD = 150
"""Mean magnitude of a frame of speech, of 32,767: -47 dBFS. The lab's assumption: the shipped clips' vowels have some
2,000 and up, a quiet room's hiss a few tens."""

END_SILENCE_S = 0.5
"""How much silence ends an utterance. The lab's assumption, between the pauses inside the shipped clips (under 0.3 s)
and the study's answers, which leave no room for more."""

BEGIN_S = 0.06
"""How long it must be loud before it counts as speech: a click is shorter."""

MARGIN_S = 0.2
"""What is kept of the silence before and after: plosives begin quietly."""

LONGEST_S = 30.0
"""An utterance is handed out then, ended or not; it bounds what a noisy line can store."""

SKIP = 4
"""Every fourth sample is enough to judge loudness by, and takes a fourth of the time."""

FRAME = round(AUDIO_RATE_IN * FRAME_S) * WIDTH
"""In octets."""


class EndOfSpeech:
    """Takes a line's audio in pieces of any size, gives utterances when they have ended.

    Args:
        silence_s: How much silence ends an utterance.
        loud: Mean magnitude from which a frame is loud.
    """

    def __init__(self, *, silence_s: float = END_SILENCE_S, loud: int = LOUD) -> None:
        self._ends_after = round(silence_s / FRAME_S)
        self._loud = loud
        self._left = b""
        self._heard = bytearray()
        self._run = 0
        self._silent = 0
        self._speaking = False

    @property
    def speaking(self) -> bool:
        """Whether somebody speaks now, or paused for less than would end it."""
        return self._speaking

    def feed(self, pcm: bytes) -> tuple[bytes, ...]:
        """Go on by a piece of audio.

        Args:
            pcm: 16 kHz, 16 bits, one channel, any number of octets.

        Returns:
            The utterances that ended in it, oldest first, each with some silence around it.
        """
        pcm = self._left + pcm
        whole = len(pcm) - len(pcm) % FRAME
        self._left = pcm[whole:]
        frames = (pcm[at : at + FRAME] for at in range(0, whole, FRAME))
        return tuple(self._take() for frame in frames if self._frame(frame))

    def _frame(self, frame: bytes) -> bool:
        """Whether an utterance ends with this frame."""
        loud = is_loud(frame, self._loud)
        self._heard += frame
        self._run = self._run + 1 if loud else 0
        self._silent = 0 if loud else self._silent + 1
        if not self._speaking:
            self._speaking = self._run * FRAME_S >= BEGIN_S - FRAME_S / 2
            if not loud:
                del self._heard[: -_octets(MARGIN_S)]
            return False
        return self._silent >= self._ends_after or len(self._heard) >= _octets(LONGEST_S)

    def _take(self) -> bytes:
        spare = self._silent * FRAME - _octets(MARGIN_S)
        utterance = bytes(self._heard[:-spare] if spare > 0 else self._heard)
        self._forget()
        return utterance

    def _forget(self) -> None:
        self._heard.clear()
        self._run = self._silent = 0
        self._speaking = False


def is_loud(frame: bytes, loud: int = LOUD) -> bool:
    """Whether a frame's mean magnitude reaches a threshold.

    Args:
        frame: 16-bit samples, an even number of octets.
        loud: The threshold, of 32,767.
    """
    samples = memoryview(frame).cast("h")[::SKIP]
    return sum(map(abs, samples)) >= loud * len(samples)


def _octets(seconds: float) -> int:
    return round(AUDIO_RATE_IN * seconds) * WIDTH
