"""Audio in: what is counted, what reaches the ear, and where the client marks speech itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.protocol.messages import Blob
from lab.live.session.hearing import Hearing, acceptable
from tests.live.session.fakes import FakeEar

LOUD = b"\x01\x01"


class Ear:
    """Remembers what it was fed."""

    def __init__(self) -> None:
        self.fed: list[bytes] = []

    def feed(self, pcm: bytes) -> tuple[bytes, ...]:
        self.fed.append(pcm)
        return ()


@pytest.mark.parametrize(
    ("mime_type", "expected"),
    [
        ("audio/pcm;rate=16000", True),
        ("audio/pcm; rate=16000", True),
        ("AUDIO/PCM;Rate=16000", True),
        ("audio/pcm", True),
        ("audio/pcm;rate=24000", False),
        ("audio/pcm;rate=", False),
        ("audio/wav", False),
        ("image/png", False),
        ("", False),
    ],
)
def test_only_pcm_of_the_servers_rate_is_taken(mime_type: str, expected: bool) -> None:
    assert acceptable(Blob(b"", mime_type)) is expected


@given(st.lists(st.binary(max_size=9)))
def test_the_audio_clock_counts_octets_and_the_ear_gets_whole_samples_in_order(chunks: list[bytes]) -> None:
    ear = Ear()
    hearing = Hearing(ear)
    for chunk in chunks:
        assert hearing.feed(chunk) == ()

    whole = b"".join(chunks)
    assert hearing.audio_s == len(whole) / 32_000
    assert all(len(pcm) % 2 == 0 for pcm in ear.fed)
    assert b"".join(ear.fed) == whole[: len(whole) // 2 * 2]


def test_the_ear_finds_the_end_of_an_utterance() -> None:
    hearing = Hearing(FakeEar())

    assert [hearing.feed(pcm) for pcm in (LOUD, b"\0\0", b"\0\0", b"\0\0")] == [(), (), (LOUD,), ()]


def test_the_end_of_the_stream_ends_the_utterance_and_does_not_move_the_audio_clock() -> None:
    hearing = Hearing(FakeEar())
    hearing.feed(LOUD)
    before_s = hearing.audio_s

    assert hearing.stream_end() == (LOUD,)
    assert hearing.stream_end() == ()
    assert hearing.audio_s == before_s


def test_where_the_client_marks_activity_the_ear_is_not_asked() -> None:
    ear = Ear()
    hearing = Hearing(ear)
    hearing.manual = True
    hearing.feed(b"\7\7")
    hearing.start()
    hearing.feed(LOUD)
    hearing.feed(b"\0\0")

    assert hearing.stream_end() == ()
    assert hearing.end() == (LOUD + b"\0\0",)
    assert hearing.end() == ()
    assert ear.fed == []
    assert hearing.audio_s == 6 / 32_000


def test_an_activity_that_never_ends_is_kept_to_about_a_minute() -> None:
    hearing = Hearing(Ear())
    hearing.manual = True
    hearing.start()
    for _ in range(70):
        hearing.feed(bytes(32_000))

    assert [len(utterance) for utterance in hearing.end()] == [60 * 32_000]
