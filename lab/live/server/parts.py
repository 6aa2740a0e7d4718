"""What the sessions of the program are made of: the scripted model, its ear, and the recogniser."""

from lab.live.server.serving import Parts


def scripted() -> Parts:
    """The scripted model, energy-based ends of speech, and recognition by pocketsphinx, loaded when first needed."""
    from lab.live.model.scripted import ScriptedModel
    from lab.live.model.speech import EndOfSpeech

    return Parts(
        model=lambda profile, uniform: ScriptedModel(profile, uniform=uniform), speech=EndOfSpeech, recognise=_text
    )


def _text(pcm: bytes) -> str:
    from lab.live.voice.recogniser import recognise

    return recognise(pcm)
