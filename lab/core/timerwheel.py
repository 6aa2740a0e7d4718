"""When a kernel timer really fires: the timer wheel (``kernel/time/timer.c``).

A TCP timer is armed in jiffies and sorted into a bucket of the wheel, whose buckets are the wider the longer the wait.
It never fires early. A wait of ``j`` jiffies goes to the lowest level ``n`` with ``j < 63 * 8**n``; buckets of that
level lie ``8**n`` jiffies apart, and the timer takes the first one after its expiry (``calc_index``). So a wait is late
by one jiffy to ``8**n`` jiffies, and the instant is a multiple of ``8**n``: after one long wait the following ones are
no longer random. With HZ 250, 120 s always become 120.832 s when the wait before them was as long.
"""

import math

_BUCKETS = 63
"""LVL_SIZE - 1: waits that fit into the first level."""

_STEP_BITS = 3
"""LVL_CLK_SHIFT: each level is 8 times as coarse as the one below."""

DEFAULT_HZ = 250
"""CONFIG_HZ of Debian's and this lab's kernels; distributions also use 100, 300 and 1000."""

_ROUNDING_SLACK = 1e-6
"""Part of a jiffy that floating-point seconds may exceed a whole jiffy by without meaning one more."""


def to_jiffies(seconds: float, hz: int = DEFAULT_HZ) -> int:
    """The wait in jiffies, rounded up as ``usecs_to_jiffies`` and ``msecs_to_jiffies`` do."""
    return math.ceil(seconds * hz - _ROUNDING_SLACK)


def granularity(wait: int) -> int:
    """Distance of the buckets that a wait of ``wait`` jiffies is sorted into, in jiffies."""
    # The smallest power of 8 that exceeds wait // 63; models ask for it millions of times.
    return 1 << _STEP_BITS * (((wait // _BUCKETS).bit_length() + _STEP_BITS - 1) // _STEP_BITS)


def fires_at(now: int, wait: int) -> int:
    """The tick at which a timer fires that is armed at tick ``now`` for ``wait`` jiffies."""
    spacing = granularity(wait)
    return ((now + wait) // spacing + 1) * spacing


def window_s(wait_s: float, hz: int = DEFAULT_HZ) -> tuple[float, float]:
    """Earliest and latest duration of one wait, whatever the phase of the wheel.

    Args:
        wait_s: What the kernel asks for, seconds.
        hz: Jiffies per second.

    Returns:
        The nominal duration (whole jiffies) and the latest one, seconds.
    """
    wait = to_jiffies(wait_s, hz)
    return wait / hz, (wait + granularity(wait)) / hz
