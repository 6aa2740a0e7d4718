"""Importing this hears the shipped clips once, and speaks once: for a process that forks many servers.

What the recogniser makes of an utterance is remembered, and a fork inherits it. Where forty sessions begin at the same
time on two cores, forty decoders that load and search would delay every pong by a second. The model's syllables are
made once likewise.
"""

import contextlib
from collections.abc import Iterator, Sequence

from lab.core.errors import EnvironmentNotReady
from lab.live.model.manner import Manner
from lab.live.model.speech import EndOfSpeech
from lab.live.model.utterance import PITCHES, Utterance, utter
from lab.live.session.profile import DEFAULT
from lab.live.voice.clips import load
from lab.live.voice.recogniser import recognise

CONVERSATIONS = (("book", "follow-up"), ("hello",))
"""Clips in the order in which the study's scenarios say them: an utterance begins in the silence before it."""


def rehearse() -> list[str]:
    """The words of every clip of the conversations; the recogniser remembers them.

    Raises:
        EnvironmentNotReady: there is no recogniser.
    """
    return [recognise(utterance) for clips in CONVERSATIONS for utterance in utterances(clips)]


def utterances(clips: Sequence[str]) -> Iterator[bytes]:
    """What a session takes for the utterances of these clips."""
    ear = EndOfSpeech()
    for chunk in (chunk for clip in clips for chunk in load(clip).chunks()):
        yield from ear.feed(chunk)


def speak() -> Utterance:
    """Every syllable that the model of the default profile has; they are remembered too."""
    manner = Manner.of(DEFAULT)
    return utter(" ".join(["now"] * len(PITCHES)), words_per_s=manner.words_per_s, chunk_s=manner.chunk_s)


speak()
with contextlib.suppress(EnvironmentNotReady):  # Who has no recogniser hears of it when somebody speaks.
    rehearse()
