"""What the sessions of the program are made of: the scripted model, its ear, and the recogniser."""

import random

from lab.live.protocol.messages import Setup
from lab.live.server.serving import Parts
from lab.live.session.ports import Model
from lab.live.session.profile import Profile


def scripted() -> Parts:
    """The scripted model, energy-based ends of speech, and recognition by pocketsphinx, begun when first needed."""
    from lab.live.model.speech import EndOfSpeech
    from lab.live.voice.apart import Apart

    apart = Apart()
    return Parts(model=model, speech=EndOfSpeech, recognise=apart.words, close=apart.close)


def model(profile: Profile, setup: Setup, draw: random.Random) -> Model:
    """A scripted model with the timing of a profile, which knows the tools that a setup declares."""
    from lab.live.model.manner import Manner
    from lab.live.model.scripted import ScriptedModel, declared

    def call_id() -> str:
        # As long as those that public logs show.
        return f"function-call-{draw.getrandbits(64)}"

    return ScriptedModel(Manner.of(profile), declared(setup.tools), draw.uniform, call_id)
