"""Coroutines stepped by hand: which of them goes on is chosen at every step, without an event loop or a clock.

A coroutine gives way at a ``point``, which says under which condition it can go on. Whatever asyncio might make of two
tasks is one of the orders here; a run takes microseconds, and can be repeated.
"""

from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")
Program = Coroutine[Any, None, None]
Choose = Callable[[Sequence[str]], str]
"""Which of the programs that can go on does."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place where a coroutine gives way; awaited."""

    ready: Callable[[], bool] = lambda: True

    def __await__(self) -> Generator["Point", None, None]:
        yield self


class Stuck(Exception):
    """Programs wait for each other."""


def interleave(programs: Mapping[str, Program], choose: Choose) -> tuple[str, ...]:
    """Step coroutines until all are over; who went when.

    Args:
        programs: Coroutines not yet begun, by their names.
        choose: Asked before each step.

    Raises:
        Stuck: none of them can go on.
    """
    waiting = dict.fromkeys(programs, Point())
    steps: list[str] = []
    while waiting:
        able = [name for name, point in waiting.items() if point.ready()]
        if not able:
            for program in programs.values():
                program.close()
            raise Stuck(f"{' and '.join(waiting)} wait for each other after {' '.join(steps)}")
        name = choose(able)
        steps.append(name)
        try:
            waiting[name] = programs[name].send(None)
        except StopIteration:
            del waiting[name]
    return tuple(steps)


def begin_with(first: str, choose: Choose) -> Choose:
    """Let one program take the first step, and choose from then on."""
    begun = False

    def chosen(able: Sequence[str]) -> str:
        nonlocal begun
        if begun:
            return choose(able)
        begun = True
        return first

    return chosen


def prefer(favourite: str) -> Choose:
    """Let one program go first whenever it can."""
    return lambda able: favourite if favourite in able else able[0]


def every_order(run: Callable[[Choose], Result]) -> Iterator[Result]:
    """What a run gives, once for each order of its steps.

    Args:
        run: Makes its coroutines anew and interleaves them by the choices that it is given.
    """
    path: list[tuple[int, int]] = []
    while True:
        depth = 0

        def choose(able: Sequence[str]) -> str:
            nonlocal depth
            if depth == len(path):
                path.append((0, len(able)))
            depth += 1
            return able[path[depth - 1][0]]

        yield run(choose)
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return
        path[-1] = (path[-1][0] + 1, path[-1][1])
