"""Recognition of the shipped clips, and of what is no speech."""

import os
import random
import sys
from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.live.model.hearing import Intent, Request, understand
from lab.live.model.speech import EndOfSpeech
from lab.live.voice import recogniser
from lab.live.voice.clips import Clip, load, texts
from lab.live.voice.recogniser import Recogniser, words_of

WORDS = {
    "book": "book me the three p m slot tomorrow please",
    "book-monday": "book me the ten a m slot on monday please",
    "hello": "hi can you hear me",
    "asked": "did you book it",
    "follow-up": "what should i bring with me",
    "cancel": "please cancel my booking",
    "still-there": "are you still there",
    "thanks": "thank you goodbye",
}

UNDERSTOOD = {
    "book": Request(Intent.BOOK, "tomorrow 3pm"),
    "book-monday": Request(Intent.BOOK, "monday 10am"),
    "hello": Request(Intent.GREETING),
    "asked": Request(Intent.ASKED),
    "follow-up": Request(Intent.QUESTION),
    "cancel": Request(Intent.CANCEL),
    "still-there": Request(Intent.GREETING),
    "thanks": Request(Intent.THANKS),
}


@pytest.fixture(scope="module")
def ear() -> Recogniser:
    try:
        return Recogniser()
    except EnvironmentNotReady as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def utterances(pcm: bytes) -> Iterator[bytes]:
    """What a session's ear finds in audio that comes in chunks of 100 ms."""
    speech = EndOfSpeech()
    for at in range(0, len(pcm), 3200):
        yield from speech.feed(pcm[at : at + 3200])


def quieter(clip: Clip, gain: float) -> bytes:
    return array("h", (int(sample * gain) for sample in array("h", clip.pcm))).tobytes()


def noise(amplitude: float, seconds: float, seed: int = 7) -> bytes:
    chance = random.Random(seed)
    return array("h", (round(chance.uniform(-amplitude, amplitude)) for _ in range(round(16_000 * seconds)))).tobytes()


def test_every_clip_is_tested() -> None:
    assert set(texts()) == set(WORDS) == set(UNDERSTOOD)


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("gain", [1, 0.5, 0.2])
@pytest.mark.parametrize("late", [0, 700, 2_300], ids=lambda late: f"{late} samples late")
def test_a_clip_in_chunks_at_any_offset_and_loudness_is_one_utterance_with_its_words(
    ear: Recogniser, name: str, gain: float, late: int
) -> None:
    heard = list(utterances(bytes(2 * late) + quieter(load(name), gain) + bytes(32_000)))

    assert [ear.words(pcm) for pcm in heard] == [WORDS[name]]


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_a_clips_words_mean_what_its_text_means(name: str) -> None:
    assert understand(WORDS[name]) == understand(load(name).text) == UNDERSTOOD[name]


def test_a_clip_over_a_hissing_line_keeps_its_words(ear: Recogniser) -> None:
    mixed = map(sum, zip(array("h", load("asked").pcm), array("h", noise(30, 2)), strict=False))

    assert ear.words(array("h", mixed).tobytes()) == WORDS["asked"]


@pytest.mark.parametrize("amplitude", [0, 20, 1_000, 8_000])
@pytest.mark.parametrize("seed", range(5))
def test_noise_and_silence_say_nothing(ear: Recogniser, amplitude: float, seed: int) -> None:
    assert ear.words(noise(amplitude, 1.5, seed)) == ""


@pytest.mark.parametrize("pcm", [b"", b"\0", b"\0\0", bytes(100), b"\xff\x7f" * 50])
def test_a_scrap_of_audio_says_nothing(ear: Recogniser, pcm: bytes) -> None:
    assert ear.words(pcm) == ""


def test_the_words_do_not_depend_on_what_was_said_before(ear: Recogniser) -> None:
    pcm = load("follow-up").pcm
    ear.words(noise(8_000, 1))

    assert Recogniser().words(pcm) == ear.words(pcm) == WORDS["follow-up"]


def test_two_clips_with_a_pause_are_two_utterances(ear: Recogniser) -> None:
    pcm = load("hello").pcm + bytes(32_000) + load("asked").pcm + bytes(32_000)

    assert [ear.words(found) for found in islice(utterances(pcm), 3)] == [WORDS["hello"], WORDS["asked"]]


def test_without_pocketsphinx_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)

    with pytest.raises(EnvironmentNotReady, match=r"pip install pocketsphinx\. Or type"):
        Recogniser()


def test_without_its_acoustic_model_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    monkeypatch.setattr(pocketsphinx, "get_model_path", lambda name: f"/nonexistent/{name}")

    with pytest.raises(EnvironmentNotReady, match="does not start"):
        Recogniser()


def test_every_word_of_the_grammar_has_a_pronunciation() -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    words = words_of(recogniser.GRAMMAR.read_text(encoding="utf-8"))
    with Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")).open(encoding="utf-8") as lines:
        known = {line.split()[0] for line in lines}

    assert {"book", "o'clock", "tomorrow"} <= words <= known
