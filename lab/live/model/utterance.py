"""A sentence as the model speaks it: pieces of audio with the words that they carry.

The voice is a tone per syllable, with breath in it: noise, which no compression of frames makes small, so that as much
is on the way as with real speech. Samples are 16 bits in the machine's order, which is little-endian wherever the lab
runs.
"""

import functools
import math
import re
from dataclasses import dataclass

from lab.live.protocol.messages import AUDIO_RATE_OUT

WIDTH = 2
"""Octets per sample."""

SYLLABLES_PER_WORD = 1.5

PITCHES = (120, 150, 135, 160)
"""Hz, of one syllable after another; each goes into the rate a whole number of times."""

VOICE, BREATH = 6000, 1500
"""Amplitudes, of 32,767."""

REMEMBERED = 32
"""Sentences whose audio is kept, a sixth of a megabyte each: many sessions say the same ones."""

SOUNDING = 0.8
"""Share of a syllable that sounds; the rest is the pause before the next."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one message carries."""

    pcm: bytes
    """24 kHz, 16 bits, one channel."""

    text: str
    """The words that begin in it; together the pieces' texts are the sentence."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence and its pieces."""

    text: str
    pieces: tuple[Piece, ...]
    duration_s: float
    """Of its playback."""

    def rest(self, played_s: float) -> str:
        """The words that a listener had not heard to the end.

        Args:
            played_s: How long it had been playing.
        """
        words = self.text.split(" ")
        per_syllable_s = self.duration_s / sum(map(syllables, words))
        while words and (spoken_s := syllables(words[0]) * per_syllable_s) <= played_s + 1e-9:
            played_s -= spoken_s
            words.pop(0)
        return " ".join(words)


@functools.lru_cache(REMEMBERED)
def utter(text: str, *, words_per_s: float, chunk_s: float) -> Utterance:
    """A sentence, spoken.

    Args:
        text: At least one word.
        words_per_s: How fast, with 1.5 syllables to a word as English has them.
        chunk_s: Seconds of audio per piece; the last may be shorter.
    """
    words = text.split(" ")
    samples = round(AUDIO_RATE_OUT / (words_per_s * SYLLABLES_PER_WORD))
    counts = [syllables(word) for word in words]
    pcm = b"".join(_syllable(PITCHES[number % len(PITCHES)], samples) for number in range(sum(counts)))
    size = round(AUDIO_RATE_OUT * chunk_s) * WIDTH
    texts = [""] * -(-len(pcm) // size)
    begin = 0
    for number, (word, count) in enumerate(zip(words, counts, strict=True)):
        texts[begin * samples * WIDTH // size] += word if number == 0 else f" {word}"
        begin += count
    pieces = tuple(Piece(pcm[number * size : (number + 1) * size], said) for number, said in enumerate(texts))
    return Utterance(text, pieces, len(pcm) / WIDTH / AUDIO_RATE_OUT)


def syllables(word: str) -> int:
    """How many syllables a word has, roughly: its groups of vowels; one per digit, or capital beside digits."""
    spelled = sum(map(str.isdigit, word)) + (sum(map(str.isupper, word)) if any(map(str.isdigit, word)) else 0)
    groups = 0 if spelled else len(re.findall(r"[aeiouy]+", re.sub(r"e[ds]?\b", "", word.lower())))
    return max(1, spelled, groups)


@functools.cache
def _syllable(pitch: int, samples: int) -> bytes:
    """A tone with breath, then a pause; whole periods, so that it begins and ends at rest."""
    period = AUDIO_RATE_OUT // pitch
    sounding = int(samples * SOUNDING) // period * period
    wave = [round(VOICE * math.sin(2 * math.pi * place / period)) for place in range(period)]
    noise = _breath(AUDIO_RATE_OUT)
    voiced = memoryview(bytearray(samples * WIDTH)).cast("h")
    for place in range(sounding):
        voiced[place] = wave[place % period] + noise[(place * 7 + pitch * 101) % len(noise)]
    return voiced.tobytes()


@functools.cache
def _breath(count: int) -> tuple[int, ...]:
    """Noise that is the same every time: the high bits of a linear congruential generator."""
    state, found = 1, []
    for _ in range(count):
        state = (state * 1_664_525 + 1_013_904_223) % 2**32
        found.append((state >> 16) * 2 * BREATH // 2**16 - BREATH)
    return tuple(found)
