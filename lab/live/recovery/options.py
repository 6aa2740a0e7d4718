"""How a loss is met, as data: every number with its unit and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from lab.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is tried after a loss, and for how long. The defaults are the study's recovery.

    Raises:
        UsageError: numbers that contradict each other.
    """

    window_s: float = 4.0
    """Attempts to resume start before this, seconds after the detection (study: four refusals in 3.55 to 3.6 s)."""

    every_s: float = 1.0
    """From the start of an attempt to the start of the next one, of its kind (study)."""

    attempt_s: float = 10.0
    """An attempt without an answer has failed after this; the study saw some hang that long. ``connect`` of the usual
    client has no such limit."""

    fallback: bool = True
    """A new session once the old one is out of reach; without it the user is told instead."""

    parallel: bool = False
    """The new session is dialled at the detection already, beside the attempts to resume; the first ready one wins."""

    note: bool = True
    """A restored history carries the status note. Without it the model re-issues its call (study, two of two)."""

    dedupe: bool = True
    """For the ledger: a re-issued call is answered from the job that runs already. Without it: two bookings."""

    close_old: bool = True
    """A close is queued on the old connection at the detection."""

    close_before_resume: bool = True
    """When the path is back, the old connection's close goes first (study: nothing else frees the session)."""

    close_wait_s: float = 1.0
    """An answer to that close is awaited this long; the study's took 14 ms, a close that waits for its retransmission
    takes longer."""

    give_up_s: float = 30.0
    """Seconds from the detection to the end of all attempts (a public gateway's budget: half a minute)."""

    max_attempts: int = 30
    """Dials of one series of losses, of both kinds. One is kept for the fallback."""

    settled_s: float = 10.0
    """A connection that held this long ends a series: a server that takes and drops is not dialled for ever."""

    def __post_init__(self) -> None:
        positive = (self.every_s, self.attempt_s, self.close_wait_s, self.give_up_s)
        if not (all(each > 0 for each in positive) and self.window_s >= 0 and self.settled_s >= 0):
            raise UsageError("A recovery's durations are positive.")
        if self.give_up_s < self.window_s:
            raise UsageError(
                f"The window lasts {self.window_s:g} s, and all attempts end after {self.give_up_s:g} s.",
                fix="give give_up_s at least the window's length",
            )
        if self.max_attempts < (2 if self.fallback else 1):
            raise UsageError(f"{self.max_attempts} attempts are too few: one to resume, and one for the fallback.")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """A policy from a JSON object; what it leaves out keeps its default.

        Raises:
            UsageError: a name or a type that a policy does not have.
        """
        kinds = {each.name: type(each.default) for each in fields(cls)}
        for name, value in settings.items():
            if name not in kinds:
                raise UsageError(f"A policy has no {name!r}.", fix=f"use one of {', '.join(kinds)}")
            if isinstance(value, bool) is not (kinds[name] is bool) or not isinstance(value, _accepted(kinds[name])):
                raise UsageError(f"A policy's {name} is of type {kinds[name].__name__}; {value!r} is not.")
        return cls(**settings)


def _accepted(kind: type) -> tuple[type, ...]:
    return (int, float) if kind is float else (kind,)
