"""What the model has yet to do, and the messages that a sentence takes."""

from dataclasses import dataclass

from lab.live.model.belief import Belief
from lab.live.model.hearing import Request
from lab.live.model.manner import Manner
from lab.live.model.utterance import Piece, Utterance
from lab.live.protocol.messages import Blob, Content, Json, Part, ServerContent, ServerMessage, Transcription

MIME = "audio/pcm;rate=24000"

TOKENS_PER_S = 25
"""Of audio. The lab's assumption: no behaviour hangs on it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a user's turn; with what is decided when it begins, from what the model was told by then."""

    at: float
    """Not before; seconds of session time. It waits for the turn before it."""

    request: Request


@dataclass(frozen=True, slots=True)
class Announce:
    """Say how a booking came out; superfluous once the user has asked for it."""

    at: float
    belief: Belief


@dataclass(frozen=True, slots=True)
class Say:
    """Say a sentence."""

    at: float
    text: str


Turn = Reply | Announce | Say

Timed = tuple[float, ServerMessage]
"""A message and when it is due."""


def sentence(utterance: Utterance, *, at: float, manner: Manner, usage: Json) -> list[Timed]:
    """The messages of a turn that says one sentence; the turn is complete when it has been played.

    Args:
        utterance: The sentence.
        at: When its first audio goes out.
        manner: How fast the rest does.
        usage: What the last message says of tokens.
    """
    pace_s = manner.chunk_s / manner.burst
    timed: list[Timed] = []
    for number, piece in enumerate(utterance.pieces):
        due = at + number * pace_s
        timed.append((due, _audio(piece)))
        if piece.text:
            timed.append((due, _words(piece)))
    generated = at + len(utterance.pieces) * pace_s
    timed.append((generated, ServerMessage(server_content=ServerContent(generation_complete=True))))
    timed.append((max(generated, at + utterance.duration_s), complete(usage)))
    return timed


def complete(usage: Json) -> ServerMessage:
    """The end of a turn."""
    return ServerMessage(server_content=ServerContent(turn_complete=True), usage_metadata=usage)


def interruption() -> ServerMessage:
    """Word that a turn was broken off."""
    return ServerMessage(server_content=ServerContent(interrupted=True))


def tokens(prompt: int, played_s: float) -> Json:
    """What a turn's last message says of tokens.

    Args:
        prompt: Tokens of all that the model was given.
        played_s: Seconds of audio that it answered with.
    """
    response = round(played_s * TOKENS_PER_S)
    return {
        "promptTokenCount": prompt,
        "responseTokenCount": response,
        "totalTokenCount": prompt + response,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": response}],
    }


def _audio(piece: Piece) -> ServerMessage:
    part = Part(inline_data=Blob(piece.pcm, MIME))
    return ServerMessage(server_content=ServerContent(model_turn=Content("model", (part,))))


def _words(piece: Piece) -> ServerMessage:
    return ServerMessage(server_content=ServerContent(output_transcription=Transcription(piece.text)))
