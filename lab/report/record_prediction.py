"""The part of a record that says what was predicted; times in seconds from the cut."""

import enum
from typing import Self

from pydantic import FiniteFloat

from lab.core.prediction import Cause
from lab.report.record_part import CopyRange, Part, Window


class Activity(enum.Enum):
    """Whether an end had data to send into the hole."""

    SENDING = "sending"
    IDLE = "idle"


class Branch(Part):
    """What one end's kernel is predicted to do, if the end sends (or stays idle) after the cut."""

    cause: Cause
    window_s: Window | None = None
    """When the kernel gives up, seconds from the cut, ``origin_s`` included; None means never."""

    copies: CopyRange | None = None
    """How many copies leave, a tail-loss probe included; None where the model does not say."""

    bound_s: FiniteFloat | None = None
    """The kernel's time limit, counted from its own first retransmission; None where a count decides."""

    copy_windows_s: tuple[Window, ...] = ()
    """When each copy leaves, seconds from the cut, ``origin_s`` included."""

    origin_s: FiniteFloat = 0.0
    """What the kernel's rule counts from, seconds from the cut: the first lost send, or the last packet received.
    Not known before the cut, and then 0: the window minus this is what was stated beforehand."""

    def counted_from(self, origin_s: float) -> Self:
        """The same branch with its times moved so that they count from another origin, seconds from the cut."""
        by = origin_s - self.origin_s
        window = self.window_s
        return self.model_copy(
            update={
                "origin_s": origin_s,
                "window_s": None if window is None else (window[0] + by, window[1] + by),
                "copy_windows_s": tuple((low + by, high + by) for low, high in self.copy_windows_s),
            }
        )


class EndPrediction(Part):
    """Prediction for one end: both branches are stated before the cut, one of them applies after it."""

    applied: Activity | None = None
    """Which branch the end took; None while that is not known."""

    sending: Branch | None = None
    idle: Branch | None = None
    closing: Branch | None = None
    """What becomes of the socket if its program closes it after the cut and before this window: counted from the first
    lost send, its FIN included. Null where the model has no rule for it, or the run is about a closed socket."""

    orphan: Branch | None = None
    """What ``closing`` comes to once it is known when the program closed: a close past its window ends the socket at
    its next expiry, and ``copies`` counts those after the close. Null where none closed, or nothing was predicted of
    such a case."""

    @property
    def branch(self) -> Branch | None:
        """The branch that applied."""
        if self.applied is None:
            return None
        return self.sending if self.applied is Activity.SENDING else self.idle


class Prediction(Part):
    """What the model said before the cut."""

    client: EndPrediction = EndPrediction()
    server: EndPrediction = EndPrediction()
