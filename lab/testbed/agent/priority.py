"""Who gets a processor first on a busy machine: the agents, since their lateness is the error of every dated death.

An agent that woke up 170 ms late could date a death no better than that. Where the caller may (as root), the fork
server becomes a real-time process before it enters its user namespace, where that right is worth nothing any more, and
every agent inherits it. An agent works for half a millisecond at a time; programs that it starts are ordinary again.
Measured with four busy loops on two CPUs: woken within 3 ms instead of 33 (a nice value of -10: 16).
"""

import contextlib
import os
from typing import Final

_LOWEST: Final = 1
"""Of the real-time priorities, all of which come before every ordinary process."""


def rise() -> None:
    """Come before all ordinary processes, if this user may, and hand that on to children.

    Not where the caller chose something else than the usual: who runs niced wants to stay behind.
    """
    if os.sched_getscheduler(0) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_LOWEST))


def keep() -> None:
    """Hand it on to no child from here on."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(_LOWEST))


def fall() -> None:
    """Be an ordinary process again."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
