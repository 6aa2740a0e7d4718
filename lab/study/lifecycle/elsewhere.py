"""Paths that need an event loop in a thread of its own, or a process of their own."""

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence

from lab.core.errors import InvalidRun
from lab.study.lifecycle.stage import SEEN_S, Attempt, Left, Stage, left

LEAVER = ("-m", "lab.live.lifecycle.leaver")
"""The program that ends with its sessions open, as arguments of the interpreter."""


async def standing(stage: Stage) -> Left:
    """Released between two runs of its event loop, which goes on only after the watch."""

    def leave(runner: asyncio.Runner) -> Left:
        return left(*runner.run(stage.opened()))

    return await _in_a_loop_of_its_own(leave)


async def stopping(stage: Stage) -> Left:
    """Released in the last turn of its event loop, as a local name of the coroutine that the loop runs."""

    async def main() -> Left:
        session, life, reading = await stage.opened()
        return left(session, life, reading)

    return await _in_a_loop_of_its_own(lambda runner: runner.run(main()))


async def _in_a_loop_of_its_own(leave: Callable[[asyncio.Runner], Left]) -> Left:
    """Leave by way of a loop in another thread, which stands still until the watch is over."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[Left] = loop.create_future()
    watched = threading.Event()
    ended = asyncio.Event()

    def live() -> None:
        try:
            with asyncio.Runner() as runner:
                found = leave(runner)
                found.here = False
                loop.call_soon_threadsafe(ready.set_result, found)
                watched.wait()
                leaked = found.service() if found.service is not None else None
                if leaked is not None:
                    runner.run(leaked.close())
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            loop.call_soon_threadsafe(_failed, ready, error)
        loop.call_soon_threadsafe(ended.set)

    async def tidy() -> None:
        watched.set()
        await ended.wait()

    threading.Thread(target=live, name="a loop that stands still", daemon=True).start()
    found = await ready
    found.tidy = tidy
    return found


def _failed(ready: "asyncio.Future[Left]", error: Exception) -> None:
    if not ready.done():
        ready.set_exception(error)


async def exits(stages: Sequence[Stage]) -> list[Left]:
    """The path out of the process: one program with a session to each server, all of one variant, ends.

    The time begins when it is told to end, so that its interpreter's end is in it.

    Raises:
        InvalidRun: it did not connect, or did not end well.
    """
    to = [[stage.server.url, stage.server.endpoint.model] for stage in stages]
    began = time.monotonic()
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, *LEAVER),
        json.dumps({"variant": stages[0].variant.name, "to": to}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        async with asyncio.timeout(SEEN_S):
            line = await program.stdout.readline()
        if not line:
            async with asyncio.timeout(SEEN_S):
                _, wrong = await program.communicate()
            raise InvalidRun(f"The program that is to end with open sessions did not connect: {_first_words(wrong)}")
        ports = json.loads(line)["ports"]
        lives = [await stage.seen([Attempt(port, began)]) for stage, port in zip(stages, ports, strict=True)]
        at = time.monotonic()
        async with asyncio.timeout(SEEN_S):
            _, wrong = await program.communicate(b"end\n")
        if program.returncode != 0:
            said = f"ended with {program.returncode}: {_first_words(wrong)}"
            raise InvalidRun(f"The program that was to end with open sessions {said}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        await program.wait()
    return [Left(life, at) for life in lives]


def _first_words(said: bytes) -> str:
    """What a program said first; of a traceback, its error."""
    lines = said.decode(errors="replace").splitlines()
    return next(
        (line for line in lines if line.strip() and not line.startswith((" ", "Traceback "))), "it says nothing"
    )
