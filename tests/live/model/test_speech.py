"""Where utterances begin and end."""

import math
from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.model.speech import END_SILENCE_S, LONGEST_S, EndOfSpeech


def tone(seconds: float, amplitude: int = 3_000) -> bytes:
    return array("h", (round(amplitude * math.sin(place / 5)) for place in range(round(16_000 * seconds)))).tobytes()


def quiet(seconds: float) -> bytes:
    return bytes(round(16_000 * seconds) * 2)


def feed(speech: EndOfSpeech, pcm: bytes, size: int = 3_200) -> list[tuple[int, bytes]]:
    """Utterances, and how many octets had been fed when each was handed out."""
    fed = ((min(at + size, len(pcm)), speech.feed(pcm[at : at + size])) for at in range(0, len(pcm), size))
    return [(at, utterance) for at, utterances in fed for utterance in utterances]


def test_silence_is_no_utterance_however_long() -> None:
    speech = EndOfSpeech()

    assert feed(speech, quiet(60)) == []
    assert not speech.speaking


def test_an_utterance_is_handed_out_when_its_silence_is_long_enough() -> None:
    (at, utterance), *rest = feed(EndOfSpeech(), quiet(1) + tone(1) + quiet(2))

    assert rest == []
    assert 0 <= at / 32_000 - (2 + END_SILENCE_S) <= 0.1
    assert 1.0 <= len(utterance) / 32_000 <= 1.5
    assert tone(1)[640:-640] in utterance


def test_a_pause_inside_a_sentence_does_not_end_it() -> None:
    assert len(feed(EndOfSpeech(), tone(0.5) + quiet(0.4) + tone(0.5) + quiet(1))) == 1


def test_a_click_is_no_speech() -> None:
    assert feed(EndOfSpeech(), (quiet(0.5) + tone(0.02, 30_000)) * 4 + quiet(1)) == []


def test_hiss_below_the_threshold_is_silence() -> None:
    assert feed(EndOfSpeech(), tone(3, 100)) == []


def test_all_utterances_of_one_piece_come_at_once_and_nothing_piles_up() -> None:
    speech = EndOfSpeech()
    first, second = speech.feed(tone(0.5) + quiet(1) + tone(0.8) + quiet(1))

    assert len(first) < len(second)
    assert speech.feed(quiet(5)) == ()


def test_noise_that_never_ends_is_handed_out_in_bounded_pieces() -> None:
    found = feed(EndOfSpeech(), tone(2 * LONGEST_S + 1))

    assert [len(utterance) / 32_000 for _, utterance in found] == [LONGEST_S, LONGEST_S]


def test_it_says_whether_somebody_speaks() -> None:
    speech = EndOfSpeech()
    states = []
    for pcm in (tone(0.04), tone(0.1), quiet(0.4), quiet(0.2)):
        speech.feed(pcm)
        states.append(speech.speaking)

    assert states == [False, True, True, False]


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=30), st.integers(0, 3_000))
@settings(deadline=None, max_examples=40)
def test_how_the_audio_is_cut_changes_no_octet_of_what_is_found(sizes: list[int], late: int) -> None:
    pcm = quiet(late / 16_000) + tone(0.7) + quiet(1) + tone(0.3) + quiet(1)
    whole = [utterance for _, utterance in feed(EndOfSpeech(), pcm, 640)]
    speech, at = EndOfSpeech(), 0
    found: list[bytes] = []
    while at < len(pcm):
        for size in sizes:
            found += speech.feed(pcm[at : at + size])
            at += size

    assert found == whole
