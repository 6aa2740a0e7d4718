import pytest

from lab.live.voice.recogniser import _shared
from lab.live.voice.rehearsed import CONVERSATIONS, rehearse, utterances

pytest.importorskip("pocketsphinx", reason="pip install pocketsphinx")


def test_every_clip_of_the_conversations_is_heard() -> None:
    assert len(rehearse()) == sum(map(len, CONVERSATIONS))
    assert all(rehearse())


def test_what_was_heard_once_costs_nothing_again() -> None:
    rehearse()
    before = _shared()._words.cache_info()
    assert all(_shared().words(each) for clips in CONVERSATIONS for each in utterances(clips))
    after = _shared()._words.cache_info()

    assert after.misses == before.misses
    assert after.hits > before.hits
