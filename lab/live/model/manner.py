"""How fast a model answers, and how it speaks: numbers with their sources.

"Study" is the test series of October 2026 against ``gemini-3.8-live``. Where it gives no figure the lab assumes one,
and says so. A server's profile has fields of the same names, which a sweep may change.
"""

from dataclasses import dataclass
from typing import Protocol

Range = tuple[float, float]
"""Least and greatest of what is drawn evenly."""


class Timings(Protocol):
    """What a server's profile says of its model."""

    @property
    def call_s(self) -> Range: ...  # noqa: D102 - see Manner
    @property
    def reply_s(self) -> Range: ...  # noqa: D102
    @property
    def announce_s(self) -> Range: ...  # noqa: D102
    @property
    def restored_reply_s(self) -> Range: ...  # noqa: D102
    @property
    def reissue_s(self) -> Range: ...  # noqa: D102
    @property
    def words_per_s(self) -> float: ...  # noqa: D102
    @property
    def burst(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Manner:
    """A model's timing; seconds of session time."""

    call_s: Range = (0.55, 0.70)
    """From the end of the user's turn, as the server finds it, to the tool call. Study: the call came about 4.05 s
    after the session's start. Here the setup takes 0.3 s of them; the end of the clip ``book``, with 2.3 s of speech,
    is heard 3.0 s after its begin (0.1 s until its first chunk is spoken, 0.5 s of silence that end it); its
    transcript takes 0.1 s. What is left is this."""

    reply_s: Range = (1.68, 1.78)
    """From the end of the user's turn to the answer's first audio. Study: R2 asked 2.0 s after a resume, which was
    about 1.15 s after the commit, and had the answer 2.9 to 3.1 s after it."""

    announce_s: Range = (0.595, 0.72)
    """From a tool's response to the first audio that tells of it. Study."""

    restored_reply_s: Range = (0.76, 1.15)
    """From a restored history to the first audio. Study."""

    reissue_s: Range = (0.577, 0.858)
    """From a restored history without a status note to the call that it issues anew. Study."""

    redo_s: Range = (0.3, 0.6)
    """From a resume to the rest of a sentence that was cut off. The lab's assumption."""

    redo_share: float = 2 / 3
    """How many of the sentences that were cut off are taken up again. Study: 2 of 3."""

    words_per_s: float = 2.5
    """Unhurried English, 150 words a minute. With it the answer to a question plays for 3.5 s: more than the 1.0 s
    after which the study's connection was lost while the model spoke."""

    burst: float = 4.0
    """Seconds of audio sent per second. The lab's assumption: it puts 51 kB of base64 on the way in 0.2 s, where the
    study had 39.6 kB in flight; and the answer to a question is all sent within 1.0 s, after which the study saw no
    more than a message of 512 octets."""

    chunk_s: float = 0.2
    """Seconds of audio per message. The lab's assumption."""

    @classmethod
    def of(cls, profile: Timings) -> "Manner":
        """The manner that a server's profile describes."""
        return cls(
            call_s=profile.call_s,
            reply_s=profile.reply_s,
            announce_s=profile.announce_s,
            restored_reply_s=profile.restored_reply_s,
            reissue_s=profile.reissue_s,
            words_per_s=profile.words_per_s,
            burst=profile.burst,
        )
