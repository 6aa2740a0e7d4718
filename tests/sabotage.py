"""What the files of saboteurs share: routers with something wrong, and cases that run side by side."""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from lab.core.fault import Fault
from lab.testbed.netns import open_testbed
from lab.testbed.ports import CutReceipt, Testbed, TestbedSpec

Sabotage = Callable[[Testbed], None]
"""Spoils a testbed that has just been opened."""

Got = TypeVar("Got")


def nothing(_: Testbed) -> None:
    """Leave it alone."""


def spoil(router: object, **instead: Callable[[Fault], object]) -> None:
    """Have a router do something else.

    Args:
        router: Which.
        instead: By the name of what it is told.
    """
    for name, act in instead.items():
        setattr(router, name, act)


def cut_nothing(testbed: Testbed) -> None:
    """A cut that is said to be made, and is none."""

    def cut(_: Fault) -> CutReceipt:
        now = time.monotonic()
        return CutReceipt(now, now)

    spoil(testbed.router, cut=cut)


def heal_by_itself(testbed: Testbed, *, after_s: float) -> None:
    """A cut that nobody asked to heal, and that heals."""
    router = testbed.router
    cut = router.cut

    def cut_for_a_moment(fault: Fault) -> CutReceipt:
        receipt = cut(fault)
        threading.Timer(after_s, router.heal, (fault,)).start()
        return receipt

    spoil(router, cut=cut_for_a_moment)


def opener(sabotage: Sabotage) -> Callable[[TestbedSpec], Testbed]:
    """Opens testbeds with something wrong in them."""

    def opened(spec: TestbedSpec) -> Testbed:
        testbed = open_testbed(spec)
        sabotage(testbed)
        return testbed

    return opened


class SideBySide(Generic[Got]):
    """All cases at once, from the beginning on, since each mostly waits.

    Args:
        names: Theirs.
        run: Runs the one of this name.
    """

    def __init__(self, names: Iterable[str], run: Callable[[str], Got]) -> None:
        cases = list(names)
        self._pool = concurrent.futures.ThreadPoolExecutor(len(cases))
        self._running: dict[str, concurrent.futures.Future[Got]] = {
            name: self._pool.submit(run, name) for name in cases
        }

    def __getitem__(self, name: str) -> Got:
        """What came of it, when it is over."""
        return self._running[name].result()

    def __enter__(self) -> "SideBySide[Got]":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
