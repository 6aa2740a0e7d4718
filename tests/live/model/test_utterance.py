"""Sentences as audio."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.model.utterance import Utterance, syllables, utter

SENTENCE = "Yes, the 3 pm slot tomorrow is booked. The confirmation is BK-1001."


def speak(text: str) -> Utterance:
    return utter(text, words_per_s=2.5, chunk_s=0.2)


@given(st.lists(st.text("abeIY1-.", min_size=1, max_size=6), min_size=1, max_size=12))
def test_the_pieces_are_the_sentence_and_its_audio(words: list[str]) -> None:
    utterance = speak(" ".join(words))

    assert "".join(piece.text for piece in utterance.pieces) == utterance.text
    assert {len(piece.pcm) for piece in utterance.pieces[:-1]} <= {9_600}
    assert sum(len(piece.pcm) for piece in utterance.pieces) == round(utterance.duration_s * 48_000)


def test_it_takes_as_long_as_its_words_do() -> None:
    assert speak(" ".join(["monday at"] * 10)).duration_s == pytest.approx(20 / 2.5)


def test_audio_is_heard_and_does_not_shrink_in_a_compressed_frame() -> None:
    pcm = b"".join(piece.pcm for piece in speak(SENTENCE).pieces)
    samples = memoryview(pcm).cast("h")

    assert 5_000 < max(samples) < 15_000
    assert sum(samples) / len(samples) == pytest.approx(0, abs=100)
    assert len(zlib.compress(pcm)) > 0.6 * len(pcm)


def test_the_rest_begins_with_the_word_that_was_not_heard_to_its_end() -> None:
    utterance = speak("one two three")

    assert [utterance.rest(played_s) for played_s in (0, 0.26, 0.27, 0.6, 0.79, 0.81)] == [
        "one two three", "one two three", "two three", "three", "three", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "count"), [("tomorrow", 3), ("booked.", 1), ("the", 1), ("3", 1), ("BK-1001.", 6), ("-", 1), ("pm", 1)]
)
def test_syllables_are_counted_roughly(word: str, count: int) -> None:
    assert syllables(word) == count
