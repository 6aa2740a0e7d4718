import pytest

from lab.live.model.manner import Manner
from lab.live.model.utterance import _syllable, utter
from lab.live.session.profile import DEFAULT
from lab.live.voice.recogniser import remembered
from lab.live.voice.rehearsed import CONVERSATIONS, rehearse, speak, utterances

pytest.importorskip("pocketsphinx", reason="pip install pocketsphinx")


def test_every_clip_of_the_conversations_is_heard() -> None:
    assert len(rehearse()) == sum(map(len, CONVERSATIONS))
    assert all(rehearse())


def test_what_was_heard_once_costs_nothing_again() -> None:
    rehearse()

    assert all(remembered(each) for clips in CONVERSATIONS for each in utterances(clips))


def test_every_syllable_of_the_default_profile_is_made_once() -> None:
    speak()
    made = _syllable.cache_info().misses
    manner = Manner.of(DEFAULT)
    utter("Done: the 3 pm slot tomorrow is booked.", words_per_s=manner.words_per_s, chunk_s=manner.chunk_s)

    assert _syllable.cache_info().misses == made
