"""Reads counters and rules at rest, and sees to it that the rules have bitten."""

import time

from lab.core.errors import InvalidRun
from lab.core.fault import Fault, Matched, Placement
from lab.core.flow import Direction
from lab.run.sides import COUNTERS
from lab.testbed.ports import Counters, Testbed

NUDGE_TIMEOUT_S = 0.5
"""How long a nudge may take to the router; microseconds, unless the machine is busy. Past it the proofs will fail."""

SETTLED_TRIES = 20
"""Readings until two in a row agree that nothing was resent in between; each takes about a millisecond."""


def settled_counters(testbed: Testbed) -> tuple[dict[str, Counters], float]:
    """Every node's counters at an instant around which nothing was resent, and that instant, CLOCK_MONOTONIC."""
    nodes = (testbed.client, testbed.router, testbed.server)
    for _ in range(SETTLED_TRIES):
        first = {node.name: node.counters() for node in nodes}
        at = time.monotonic()
        second = {node.name: node.counters() for node in nodes}
        if all(first[name].get(c) == second[name].get(c) for name in first for c in COUNTERS.values()):
            return second, at
    raise InvalidRun(f"Counters that stand still for two readings were expected; {SETTLED_TRIES} times they moved.")


def settled_matched(testbed: Testbed, fault: Fault) -> tuple[Matched, float]:
    """What the rules have dropped, and an instant up to which that is all, CLOCK_MONOTONIC."""
    for _ in range(SETTLED_TRIES):
        first = testbed.router.matched(fault)
        at = time.monotonic()
        if testbed.router.matched(fault) == first:
            return first, at
    raise InvalidRun(f"A rule that rests for two readings was expected; {SETTLED_TRIES} times it had matched.")


def nudge(testbed: Testbed, fault: Fault, *, outside: bool = False) -> None:
    """Send one old acknowledgment each way, and wait until the rules have had those that are to die.

    An idle flow proves nothing by itself: a rule for the wrong port would look the same, and so would one for both ways
    where one was to be cut. And a busy one proves nothing about the time after its last segment. Only while the hole is
    open, and not into the wrong placement: a drop in the sender's own OUTPUT is told to whoever sends.

    Args:
        testbed: Where.
        fault: What is in force.
        outside: The server is no node of the lab's. Nothing is sent to it, nor on its behalf: what could provoke it to
            send would have to reach it. The client's nudge is dropped in the hole like everything else.

    Raises:
        InvalidRun: an end cannot send it.
    """
    cut = fault.direction.directions
    for direction in Direction:
        if direction not in cut and not outside:
            _send(testbed, fault, direction)
    if fault.placement is Placement.OWN_OUTPUT:
        return
    nudged = [one for one in cut if one is Direction.FORWARD or not outside]
    before = testbed.router.matched(fault)
    for direction in nudged:
        _send(testbed, fault, direction)
    deadline = time.monotonic() + NUDGE_TIMEOUT_S
    while time.monotonic() < deadline:
        now = testbed.router.matched(fault)
        if all(now.of(direction) > before.of(direction) for direction in nudged):
            return


def nudge_healed(testbed: Testbed, fault: Fault) -> None:
    """Send the same each way after a heal; the captures tell whether it came through.

    Where nobody sends any more a heal that changed nothing would look the same.

    Args:
        testbed: Where; its server is a node of the lab's.
        fault: What was in force.

    Raises:
        InvalidRun: an end cannot send it.
    """
    for direction in Direction:
        _send(testbed, fault, direction)


def _send(testbed: Testbed, fault: Fault, direction: Direction) -> None:
    node = testbed.client if direction is Direction.FORWARD else testbed.server
    try:
        node.nudge(*fault.flow.ends(direction))
    except OSError as error:
        raise InvalidRun(
            f"The {node.name}'s own node does not let the flow's packets out any more ({error.strerror or error}): "
            "not only the hole drops them."
        ) from error
