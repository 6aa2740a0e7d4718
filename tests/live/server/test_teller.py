"""Events are told in order, held while nobody reads, and counted where too many are held."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab.live.server.teller import Teller
from tests.testbed.isolated import until

PAGE = 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe of one page: its reading end, which does not block, and its writing end."""
    near, far = os.pipe()
    fcntl.fcntl(far, fcntl.F_SETPIPE_SZ, PAGE)
    os.set_blocking(near, False)
    yield near, far
    os.close(near)
    os.close(far)


def read(near: int, count: int) -> list[dict[str, Any]]:
    """The next events, so many."""
    text = b""

    def complete() -> bool:
        nonlocal text
        with contextlib.suppress(BlockingIOError):
            text += os.read(near, PAGE)
        return text.count(b"\n") >= count

    until(complete)
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_held_is_told_in_order_once_somebody_reads(pipe: tuple[int, int]) -> None:
    tell = Teller(descriptor=pipe[1])
    began = time.monotonic()
    for number in range(500):
        tell("event", t=float(number), filler="x" * 50)
    assert time.monotonic() - began < 2  # some 50 kB more than the pipe holds

    told = read(pipe[0], 500)
    assert [event["t"] for event in told] == list(range(500))
    assert all(began <= event["at"] < began + 2 for event in told), "when it happened, not when it was read"


def test_too_many_are_counted_and_told_of_later(pipe: tuple[int, int]) -> None:
    tell = Teller(most_held=20, descriptor=pipe[1])
    for number in range(200):
        tell("event", t=float(number), filler="x" * 200)
    assert tell.untold > 100
    told = read(pipe[0], 200 - tell.untold)
    lost = tell.untold
    tell("last", t=1000.0)

    assert [event["event"] for event in told] == ["event"] * len(told)
    last = read(pipe[0], 2)
    assert [event["event"] for event in last] == ["untold", "last"]
    assert last[0]["events"] == lost


def test_the_end_tells_what_is_left_and_does_not_wait_for_ever(pipe: tuple[int, int]) -> None:
    with Teller(descriptor=pipe[1]) as tell:
        for number in range(10):
            tell("event", t=float(number))
    assert len(read(pipe[0], 10)) == 10

    began = time.monotonic()
    with Teller(descriptor=pipe[1]) as tell:
        for number in range(500):
            tell("event", t=float(number))
    assert time.monotonic() - began < 5
    read(pipe[0], 500)  # so that its thread ends


def test_a_reader_that_is_gone_is_an_error_for_the_one_who_tells() -> None:
    near, far = os.pipe()
    os.close(near)
    tell = Teller(descriptor=far)

    def refused() -> bool:
        try:
            tell("event", t=0.0)
        except BrokenPipeError:
            return True
        return False

    until(refused)
    os.close(far)
