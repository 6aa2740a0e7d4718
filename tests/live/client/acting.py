"""An assistant in the test's own process, with its events."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from lab.live.client.assistant import Assistant
from lab.live.client.dialing import dialer
from lab.live.client.events import Event, Events
from lab.live.client.interpreter import Interpreter
from lab.live.client.options import Options
from lab.live.client.script import parse_script
from lab.live.clock import Clock
from lab.live.voice.clips import Clip

DEADLINE_S = 20.0

CLIPS = {
    "book": Clip("book", "Book me the 3pm slot tomorrow, please.", bytes(range(256)) * 50),
    "hello": Clip("hello", "Hi, can you hear me?", bytes(3200)),
}


class Acted:
    """What an assistant did."""

    def __init__(self, assistant: Assistant, events: Events) -> None:
        self.assistant = assistant
        self.events = events
        self.ok: bool | None = None
        self._kept: list[asyncio.Future[Any]] = []

    def keep(self, running: "asyncio.Future[Any]") -> None:
        """Something that goes on beside it, ended with it."""
        self._kept.append(running)

    async def end(self) -> None:
        for running in self._kept:
            running.cancel()
        await asyncio.gather(*self._kept, return_exceptions=True)

    def named(self, name: str) -> list[Event]:
        return [each for each in self.events.log if each.name == name]

    def one(self, name: str) -> Mapping[str, Any]:
        """The fields of the one event of this name."""
        (event,) = self.named(name)
        return event.fields

    def names(self) -> list[str]:
        return [each.name for each in self.events.log]

    async def run(self, *steps: Mapping[str, Any]) -> "Acted":
        async with asyncio.timeout(DEADLINE_S):
            self.ok = await Interpreter(self.assistant).run(parse_script(json.dumps(steps)).steps)
        return self


@contextlib.asynccontextmanager
async def acting(url: str, *, clips: Callable[[str], Clip] = CLIPS.__getitem__, **options: Any) -> AsyncIterator[Acted]:
    """An assistant that talks to a server, ended with the block."""
    clock = Clock()
    events = Events(clock, lambda *_, **__: None)
    options = {"text": True, "commit_after_s": 0.05, **options}
    made = Options(url=url, **options)
    acted = Acted(Assistant(made, dialer(made), clips, clock, events), events)
    try:
        yield acted
    finally:
        await acted.end()
        await acted.assistant.stop()
