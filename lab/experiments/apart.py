"""Measures in a process of its own: threads of thirty runs take turns in this one, each for milliseconds."""

import concurrent.futures
import multiprocessing
from collections.abc import Callable
from typing import TypeVar

from lab.core.errors import InvalidRun

Got = TypeVar("Got")

TRIES = 3
"""What a busy machine made INVALID is no result, and measured again; the last reason is raised."""


def apart(measure: Callable[[], Got]) -> Got:
    """What a function of a module gives in a new interpreter.

    Args:
        measure: Takes nothing; what it gives goes through pickle.

    Raises:
        InvalidRun: the machine was too busy at every try.
    """
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for _ in range(TRIES - 1):
            try:
                return pool.submit(measure).result()
            except InvalidRun:
                continue
        return pool.submit(measure).result()
