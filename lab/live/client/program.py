"""The assistant as a program: its options, its standard input, and its end."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence

from lab.core.errors import LabError
from lab.live.client.assistant import Assistant
from lab.live.client.dialing import dialer
from lab.live.client.events import Events
from lab.live.client.interpreter import Interpreter
from lab.live.client.options import Options, parse
from lab.live.client.talk import Talk
from lab.live.clock import Clock
from lab.live.voice import clips

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the assistant; its exit status: 0 the script was carried out, 1 it got stuck, 2 usage, 5 environment."""
    try:
        return asyncio.run(run(parse(argv)))
    except LabError as error:
        sys.stderr.write(f"{error.message}\n" + (f"Fix: {error.fix}\n" if error.fix else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


async def run(options: Options, *, events: Events | None = None, clock: Clock | None = None) -> int:
    """Carry out a script, then wait for ``quit`` or the end of standard input, with the sockets as they are.

    Args:
        options: What to do.
        events: Where it is told; None for standard output.
        clock: Session time; None for a new clock.
    """
    clock = clock or Clock()
    events = events or Events(clock)
    words = Words(lambda word: events.tell("told", word=word))
    assistant = Assistant(options, dialer(options), clips.load, clock, events)
    loop = asyncio.get_running_loop()
    script, quit_ = loop.create_task(Interpreter(assistant).run(options.script.steps)), loop.create_task(words.quit())
    try:
        await asyncio.wait({script, quit_}, return_when=asyncio.FIRST_COMPLETED)
        if not script.done() and words.told_to_quit:
            return 1
        ok = await script
        await quit_
        return 0 if ok else 1
    finally:
        script.cancel()
        quit_.cancel()
        await asyncio.gather(script, quit_, return_exceptions=True)
        await assistant.stop()
        if events.unheard:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end.


async def perform(options: Options, *, events: Events, clock: Clock) -> bool:
    """Carry out a script and end; whether it could be.

    Args:
        options: What to do.
        events: Where it is told.
        clock: Session time.
    """
    assistant = Assistant(options, dialer(options), clips.load, clock, events)
    try:
        return await Interpreter(assistant).run(options.script.steps)
    finally:
        await assistant.stop()


async def talk(options: Options, *, events: Events, clock: Clock) -> bool:
    """Talk with a person at standard input; whether the connection stayed usable to the end.

    Args:
        options: Their script is not looked at.
        events: Where it is told.
        clock: Session time.
    """
    assistant = Assistant(options, dialer(options), clips.load, clock, events)
    talking = Talk(assistant)
    Words(talking.hear, lambda: talking.hear(None))
    try:
        return await talking.run()
    finally:
        await assistant.stop()


class Words:
    """What is said on standard input, read in a thread: it may be a terminal, a pipe or a file.

    Args:
        told: Called with each line that is not ``quit``.
        ended: Called at ``quit``, or at the end of the input.
    """

    def __init__(self, told: Callable[[str], object], ended: Callable[[], object] | None = None) -> None:
        self._told = told
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self.told_to_quit = False
        """By the word itself: the end of the input alone lets a script go on."""

        threading.Thread(target=self._read, daemon=True).start()

    async def quit(self) -> None:
        """Return at ``quit``, or at the end of the input."""
        await self._over.wait()

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError, ValueError, OSError):  # The loop, or the input, is gone already.
            for line in sys.stdin:
                self._loop.call_soon_threadsafe(self._hear, line.strip())
            self._loop.call_soon_threadsafe(self._end)

    def _hear(self, word: str) -> None:
        if word == "quit":
            self.told_to_quit = True
            self._end()
        elif word:
            self._told(word)

    def _end(self) -> None:
        if not self._over.is_set():
            self._over.set()
            if self._ended is not None:
                self._ended()
