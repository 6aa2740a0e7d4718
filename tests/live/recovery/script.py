"""A recovery's playbook: what happened, and what it must command."""

from collections.abc import Sequence
from typing import Any

from lab.live.recovery.commands import Command, Dial, Happening, Report
from lab.live.recovery.policy import Policy, Recovery

DETECTED = 100.0
"""When the first loss is noticed, session seconds."""


def lost(policy: Policy | None = None, *, handle: str | None = "h0") -> tuple[Recovery, list[Command]]:
    """A recovery whose first connection was just lost, and what it commanded."""
    recovery = Recovery(policy, handle=handle)
    return recovery, recovery.lost(now=DETECTED, by="silence")


def deeds(commands: Sequence[Command]) -> list[Command]:
    """What is to be done, without the reports."""
    return [command for command in commands if not isinstance(command, Report)]


def told(commands: Sequence[Command], event: Happening) -> dict[str, Any]:
    """The one report of that event."""
    found = [command for command in commands if isinstance(command, Report) and command.event is event]
    assert len(found) == 1, commands
    return dict(found[0].fields)


def run(recovery: Recovery, until: float, *, refuse_after: float | None = None) -> list[tuple[float, Command]]:
    """Let time pass as its shell would; each attempt to resume is refused so long after its start, or hangs."""
    done: list[tuple[float, Command]] = []
    refusals: list[tuple[float, int]] = []
    while True:
        wake_at = recovery.next_at()
        ahead = refusals if wake_at is None else [(wake_at, 0), *refusals]
        at, attempt = min(ahead, default=(until, 0))
        if at >= until:
            return done
        commands = recovery.refused(attempt, 1011, "Internal error encountered.", now=at) if attempt else []
        refusals = [each for each in refusals if each[1] != attempt]
        commands = commands or recovery.wake(now=at)
        for command in commands:
            done.append((at, command))
            if isinstance(command, Dial) and command.handle is not None and refuse_after is not None:
                refusals.append((at + refuse_after, command.attempt))
