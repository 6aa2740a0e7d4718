"""What was said in an utterance, by pocketsphinx and a small grammar.

The grammar holds what a user of the lab's scenarios may say; anything else comes out as its beginning, as something
near, or as nothing. Deterministic: the same octets give the same words.
"""

import functools
import random
import re
from array import array
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol, cast

from lab.core.errors import EnvironmentNotReady
from lab.live.protocol.messages import AUDIO_RATE_IN

GRAMMAR = Path(__file__).parent / "grammar.jsgf"

SETTINGS = {
    "lm": None,
    "dict": None,
    "lw": 1.0,  # the grammar's own weights suffice; the default, made for large models, drops short words
    "bestpath": False,  # a second pass, which takes longer than the first and loses words at the end
    "loglevel": "FATAL",
}
"""Found with the shipped clips, at three loudnesses and four offsets: 96 of 96 come out right, in 0.07 s each."""

HISS = 16
"""Amplitude of the noise that is added, of 32,767. A synthesiser's silence is all zeros, of which the acoustic model
makes nonsense. pocketsphinx's own dither goes on from one utterance to the next, so that words would depend on it."""

FEWEST = 2
"""Words in a sentence: bursts of noise come out as a short "hi" or "bye" in some cases, and in none of 180 as more."""

REMEMBERED = 64
"""Utterances whose words are kept: the sessions of a study say the same clips over and over."""


def require() -> None:
    """See that speech can be recognised at all, before anybody speaks.

    Raises:
        EnvironmentNotReady: pocketsphinx is missing.
    """
    try:
        import pocketsphinx  # noqa: F401 - whether it is there
    except ImportError as error:
        raise EnvironmentNotReady(
            f"Speech needs pocketsphinx, which cannot be imported: {error}.",
            fix="pip install pocketsphinx; or type instead of speaking: --text",
        ) from error


class _Decoder(Protocol):
    """The part of pocketsphinx's decoder in use here; it publishes no types."""

    def add_word(self, word: str, phones: str, update: bool) -> int: ...
    def add_jsgf_string(self, name: str, grammar: str) -> None: ...
    def activate_search(self, name: str) -> None: ...
    def start_utt(self) -> None: ...
    def process_raw(self, pcm: bytes, no_search: bool, full_utt: bool) -> int: ...
    def end_utt(self) -> None: ...
    def hyp(self) -> Any: ...


def recognise(pcm: bytes) -> str:
    """What was said, by one recogniser for the whole process, which is made when first needed.

    Args:
        pcm: A whole utterance: 16 kHz, 16 bits, one channel.

    Raises:
        EnvironmentNotReady: see ``Recogniser``.
    """
    return _shared().words(pcm)


def remembered(pcm: bytes) -> str | None:
    """What ``recognise`` made of this utterance of late, in this process or in the one it was forked from.

    Args:
        pcm: See ``recognise``.
    """
    return _shared().remembered(pcm) if _shared.cache_info().currsize else None


class Recogniser:
    """Makes words of utterances; one thread at a time.

    Raises:
        EnvironmentNotReady: pocketsphinx is missing, or its acoustic model.
    """

    def __init__(self) -> None:
        self._decoder = _decoder(GRAMMAR.read_text(encoding="utf-8"))
        self._known: dict[bytes, str] = {}

    def words(self, pcm: bytes) -> str:
        """What was said; empty for noise and silence.

        Args:
            pcm: A whole utterance: 16 kHz, 16 bits, one channel.
        """
        pcm = _whole(pcm)
        if pcm not in self._known:
            found = self._decode(pcm)
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[pcm] = found
        return self._known[pcm]

    def remembered(self, pcm: bytes) -> str | None:
        """What ``words`` gave for this utterance of late; None where it has to decode."""
        return self._known.get(_whole(pcm))

    def _decode(self, pcm: bytes) -> str:
        if not pcm:
            return ""
        self._decoder.start_utt()
        self._decoder.process_raw(_hissing(pcm), no_search=False, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        words = "" if found is None else str(found.hypstr)
        return words if len(words.split()) >= FEWEST else ""


@functools.cache
def _shared() -> Recogniser:
    return Recogniser()


def _whole(pcm: bytes) -> bytes:
    """Without the half sample at its end."""
    return pcm[: len(pcm) // 2 * 2]


def _hissing(pcm: bytes) -> bytes:
    """An utterance in a quiet room instead of in none."""
    sums = map(int.__add__, array("h", pcm), cycle(_hiss()))
    return array("h", (max(-32_768, min(32_767, sample)) for sample in sums)).tobytes()


@functools.cache
def _hiss() -> tuple[int, ...]:
    """A second of noise, the same every time."""
    chance = random.Random(1)  # noqa: S311 - nothing secret
    return tuple(chance.randrange(-HISS, HISS + 1) for _ in range(AUDIO_RATE_IN))


def _decoder(grammar: str) -> _Decoder:
    try:
        import pocketsphinx
    except ImportError as error:
        raise EnvironmentNotReady(
            f"Speech needs pocketsphinx, which cannot be imported: {error}.",
            fix="Install it: pip install pocketsphinx. Or type instead of speaking.",
        ) from None
    try:
        model, dictionary = (pocketsphinx.get_model_path(f"en-us/{name}") for name in ("en-us", "cmudict-en-us.dict"))
        decoder = cast("_Decoder", pocketsphinx.Decoder(pocketsphinx.Config(hmm=model, **SETTINGS)))
        # The whole dictionary takes five times as long to load as everything else.
        for word, phones in _pronunciations(Path(dictionary), words_of(grammar)):
            decoder.add_word(word, phones, False)
        decoder.add_jsgf_string("assistant", grammar)
        decoder.activate_search("assistant")
    except (OSError, RuntimeError, ValueError) as error:
        raise EnvironmentNotReady(
            f"pocketsphinx does not start: {error}.",
            fix="Install it anew, with its acoustic model: pip install --force-reinstall pocketsphinx.",
        ) from None
    return decoder


def words_of(grammar: str) -> frozenset[str]:
    """The words that a grammar's rules hold.

    Args:
        grammar: In JSpeech Grammar Format.
    """
    rules = re.sub(r"//.*|^#.*|^grammar .*|<\w+>|\bpublic\b", " ", grammar, flags=re.MULTILINE)
    return frozenset(re.findall(r"[a-z']+", rules))


def _pronunciations(dictionary: Path, words: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Words and their phones; a further pronunciation is ``the(2)``."""
    with dictionary.open(encoding="utf-8") as lines:
        for line in lines:
            word, _, phones = line.partition(" ")
            if word.split("(")[0] in words:
                yield word, phones.strip()
