import pytest

from lab.live.voice.recogniser import remembered
from lab.live.voice.rehearsed import CONVERSATIONS, rehearse, utterances

pytest.importorskip("pocketsphinx", reason="pip install pocketsphinx")


def test_every_clip_of_the_conversations_is_heard() -> None:
    assert len(rehearse()) == sum(map(len, CONVERSATIONS))
    assert all(rehearse())


def test_what_was_heard_once_costs_nothing_again() -> None:
    rehearse()

    assert all(remembered(each) for clips in CONVERSATIONS for each in utterances(clips))
