"""The controller as this API uses it: over HTTP, or within this process. One protocol, and the handle of a fault."""

import time
from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

from lab.core.errors import UsageError
from lab.core.fault import Cut, Matched, Scope
from lab.core.flow import FourTuple
from lab.testbed.ports import PassingFlow
from lab.testcontainers.answers import FaultState, Verdict

Kind = TypeVar("Kind", Cut, Scope)

LOST_TIMEOUT_S = 10.0
_POLL_S = 0.05
CALM_S = 1.05
"""How long the capture runs before a cut, so that it can be judged: the verdict asks for a second."""


class Control(Protocol):
    """What the controller does."""

    def flows(self) -> Sequence[PassingFlow]:
        """The open flows, oldest first."""

    def light(self) -> Sequence[PassingFlow]:
        """Those that are not cut."""

    def cut(self, flow: FourTuple, direction: Cut, scope: Scope, heal_after_s: float | None) -> FaultState:
        """Put a fault in force; idempotent."""

    def fault(self, name: str) -> FaultState:
        """A fault as it is now."""

    def heal(self, name: str) -> FaultState:
        """Take it back; idempotent."""

    def heal_all(self) -> Sequence[FaultState]:
        """Take back all; those that were in force."""

    def verdict(self, name: str) -> Verdict:
        """What the router proves of it."""

    def capture(self, side: str) -> bytes:
        """What was captured on one side until now, as pcapng."""


class CutFlow:
    """A flow that was cut; as a context manager it heals at its end.

    Args:
        control: Who cut it.
        state: Right after the cut.
    """

    def __init__(self, control: Control, state: FaultState) -> None:
        self._control = control
        self._first = state

    @property
    def id(self) -> str:
        """The fault's, as the control API names it."""
        return self._first.id

    @property
    def flow(self) -> FourTuple:
        """The flow."""
        return self._first.flow

    @property
    def state(self) -> FaultState:
        """The fault as it is now."""
        return self._control.fault(self.id)

    @property
    def matched(self) -> Matched:
        """Packets dropped so far."""
        return self.state.matched

    def wait_until_lost(self, packets: int = 1, timeout_s: float = LOST_TIMEOUT_S) -> Matched:
        """Wait until the hole has swallowed so many packets, in whichever direction; how many of each.

        Raises:
            TimeoutError: the flow has sent fewer.
        """
        deadline = time.monotonic() + timeout_s
        while (lost := self.matched).forward + lost.return_ < packets:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"After {timeout_s:g} s {packets} packets of {self.flow} were expected to be lost; it was {lost}."
                )
            time.sleep(_POLL_S)
        return lost

    def heal(self) -> FaultState:
        """Let the flow's packets pass again; idempotent."""
        return self._control.heal(self.id)

    def verdict(self) -> Verdict:
        """Whether the hole was a hole, as of now."""
        return self._control.verdict(self.id)

    def __enter__(self) -> Self:
        """The handle itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Heal."""
        self.heal()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.flow}>"


class Calm:
    """Waits before a cut until the capture has run for long enough.

    Args:
        since: When it was seen running, CLOCK_MONOTONIC.
    """

    def __init__(self, since: float) -> None:
        self._until = since + CALM_S

    @classmethod
    def begun(cls) -> Self:
        """The capture is seen running now."""
        return cls(time.monotonic())

    def wait(self) -> None:
        """Until the capture has run for ``CALM_S``."""
        time.sleep(max(0.0, self._until - time.monotonic()))


def member(kind: type[Kind], value: Kind | str) -> Kind:
    """A direction or a scope by its name.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(str(one.value) for one in kind)
        raise UsageError(f"Expected one of {names}, got {value!r}.") from None
