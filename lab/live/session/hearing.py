"""The ear of a session: how much audio came, and where an utterance ends in it."""

from lab.live.protocol.messages import AUDIO_RATE_IN, Blob
from lab.live.session.ports import SpeechEnd

OCTETS_PER_SAMPLE = 2

_QUIET = bytes(AUDIO_RATE_IN * OCTETS_PER_SAMPLE // 10)
"""100 ms of silence."""

_QUIET_TRIES = 50
"""5 s: more than any ear waits before it calls an utterance ended."""

_MOST_HELD = 60 * AUDIO_RATE_IN * OCTETS_PER_SAMPLE
"""A minute: what is kept of an activity whose end the client never marks."""


def acceptable(blob: Blob) -> bool:
    """Whether a server takes this audio: PCM, of the right rate where one is named."""
    kind, *parameters = (piece.strip().lower() for piece in blob.mime_type.split(";"))
    named = dict(piece.partition("=")[::2] for piece in parameters)
    return kind == "audio/pcm" and named.get("rate", str(AUDIO_RATE_IN)) == str(AUDIO_RATE_IN)


class Hearing:
    """Takes the audio of a session, over all its connections.

    Args:
        speech: Finds the end of an utterance; not asked where the client marks activity itself.
    """

    def __init__(self, speech: SpeechEnd) -> None:
        self._speech = speech
        self._octets = 0
        self._odd = b""
        self._activity: bytearray | None = None
        self.manual = False
        """Whether the client marks where activity starts and ends."""

    @property
    def audio_s(self) -> float:
        """The audio clock: seconds of audio received, whatever the wall says (study)."""
        return self._octets / (AUDIO_RATE_IN * OCTETS_PER_SAMPLE)

    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Take audio; gives the utterances that ended in it."""
        self._octets += len(data)
        pcm = self._odd + data
        # A client may cut its stream between the two octets of a sample.
        whole = len(pcm) - len(pcm) % OCTETS_PER_SAMPLE
        self._odd, pcm = pcm[whole:], pcm[:whole]
        if not self.manual:
            return self._speech.feed(pcm)
        if self._activity is not None and len(self._activity) < _MOST_HELD:
            self._activity += pcm
        return ()

    def start(self) -> None:
        """Take the client's mark that the user begins."""
        self._activity = bytearray()

    def end(self) -> tuple[bytes, ...]:
        """Take the client's mark that the user is done; gives the utterance."""
        utterance, self._activity = self._activity, None
        return (bytes(utterance),) if utterance else ()

    def stream_end(self) -> tuple[bytes, ...]:
        """Take the mark that no audio follows; gives the utterance that was still open.

        The ear hears silence, which the audio clock does not count.
        """
        if self.manual:
            return ()
        return next((found for _ in range(_QUIET_TRIES) if (found := self._speech.feed(_QUIET))), ())
