"""What the user hears: sound comes faster than it is played, waits in a buffer, and the buffer hides part of a loss."""

from dataclasses import dataclass

from lab.live.protocol.messages import AUDIO_RATE_OUT

SAMPLE_OCTETS = 2
"""16 bits, one channel."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The silence around a loss; instants in session seconds."""

    lost_at: float
    """When it was lost, not when that was noticed."""

    silent_from: float
    """The loss, or the end of what was buffered at it."""

    first_audio_at: float | None
    """When the user heard something again; None: never so far."""

    @property
    def heard_s(self) -> float | None:
        """How long the user heard nothing for it; None: it lasts still."""
        return None if self.first_audio_at is None else max(0.0, self.first_audio_at - self.silent_from)

    @property
    def first_audio_s(self) -> float | None:
        """From the loss to the first sound after it, the study's figure; None: none so far."""
        return None if self.first_audio_at is None else self.first_audio_at - self.lost_at


class Playback:
    """A player that starts at the first octet and plays in real time.

    Args:
        rate: Samples per second.
    """

    def __init__(self, rate: int = AUDIO_RATE_OUT) -> None:
        self._octets_per_s = rate * SAMPLE_OCTETS
        self._ends_at = float("-inf")
        """When what was received will have been played."""

        self._lost_at: float | None = None
        self._silent_from = 0.0
        self._first_audio_at: float | None = None

    def audio(self, octets: int, *, now: float) -> None:
        """Sound came: so many octets of 16-bit samples."""
        if octets <= 0:
            return
        starts_at = max(now, self._ends_at)
        if self._lost_at is not None and self._first_audio_at is None:
            self._first_audio_at = starts_at
        self._ends_at = starts_at + octets / self._octets_per_s

    def interrupted(self, *, now: float) -> None:
        """The user spoke: what was not played yet never is."""
        self._ends_at = min(self._ends_at, now)

    def lost(self, at: float) -> None:
        """The connection was lost; what is buffered is played to its end. A second loss in a gap prolongs it.

        Args:
            at: When, session seconds; where only the detection is known, that is the last frame's instant.
        """
        if self._lost_at is not None and self._first_audio_at is None:
            return
        self._lost_at, self._first_audio_at = at, None
        self._silent_from = max(at, self._ends_at)

    def playing(self, *, now: float) -> bool:
        """Whether the user hears something now."""
        return now < self._ends_at

    @property
    def gap(self) -> Gap | None:
        """Around the latest loss; None without one."""
        if self._lost_at is None:
            return None
        return Gap(self._lost_at, self._silent_from, self._first_audio_at)
