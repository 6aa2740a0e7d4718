"""The shipped clips."""

import wave

import pytest

from lab.core.errors import UsageError
from lab.live.voice.clips import FOLDER, load, texts


@pytest.mark.parametrize("name", texts())
def test_a_clip_is_16_khz_mono_16_bit_and_small(name: str) -> None:
    path = FOLDER / f"{name}.wav"
    with wave.open(str(path), "rb") as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
    assert path.stat().st_size < 100_000


def test_every_file_is_in_the_list_and_every_name_has_its_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.wav")} == set(texts())


def test_the_first_sentence_takes_as_long_as_the_studys() -> None:
    assert load("book").duration_s - 0.2 == pytest.approx(2.3, abs=0.1)


def test_it_is_sent_in_chunks_of_100_ms_and_a_pause_follows() -> None:
    clip = load("asked")
    chunks = list(clip.chunks())

    assert {len(chunk) for chunk in chunks[:-1]} == {3_200}
    assert b"".join(chunks) == clip.pcm + bytes(32_000)


def test_a_clip_that_does_not_exist_is_the_authors_mistake() -> None:
    with pytest.raises(UsageError, match=r"no clip 'nothing'.*book, book-monday"):
        load("nothing")
