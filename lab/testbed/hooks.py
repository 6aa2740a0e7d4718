"""Where in a packet's way through the stack the rules of a fault sit."""

import enum

from lab.core.fault import Fault, Placement
from lab.core.flow import Direction


class Hook(enum.Enum):
    """A hook of netfilter; the values are nftables' names, the names those of the legacy tables' chains."""

    FORWARD = "forward"
    INPUT = "input"
    OUTPUT = "output"


def hooks(fault: Fault) -> dict[Hook, tuple[Direction, ...]]:
    """The hooks that a fault needs, each with the directions whose rules are in its chain."""
    wanted, sunk = fault.direction.directions, fault.placement.sunk
    if sunk is None:
        return {Hook.OUTPUT if fault.placement is Placement.OWN_OUTPUT else Hook.FORWARD: wanted}
    parts = {Hook.OUTPUT: sunk, Hook.INPUT: sunk.opposite}
    return {hook: (direction,) for hook, direction in parts.items() if direction in wanted}
