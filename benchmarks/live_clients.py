"""Many of the lab's own connections in one process: a ``WireLink`` and a watchdog each, some of them speaking.

``python -m benchmarks.live_clients PORT SESSIONS SPEAKING`` says ``ready`` when every session is set up, and then obeys
its standard input: ``measure SECONDS`` tells what the watchdogs saw meanwhile, ``losses SECONDS`` waits for every one
of them to notice that the server has stopped, and tells how late they were. A JSON object per line.
"""

import asyncio
import json
import resource
import sys
import time
from typing import Any

from lab.live.client.connections import Connections
from lab.live.client.events import Events
from lab.live.client.lines import Line, Loss
from lab.live.client.link import Ending
from lab.live.client.opening import setup_of
from lab.live.client.options import MODEL, endpoint
from lab.live.client.speaking import Voice
from lab.live.client.wire_link import WireLink
from lab.live.clock import Clock
from lab.live.protocol.messages import FunctionCall, FunctionResponse, RealtimeInput, ServerMessage, ToolResponse
from lab.live.recovery.liveness import Watchdog
from lab.live.voice.clips import load

SAID = ("book", "asked", "follow-up", "thanks")
"""Clips, one after another, each with a second of silence behind it: who speaks, speaks all the time."""

OPENING = 50
"""Sessions that are set up at once."""

SETUP_S = 60.0


class Assistant:
    """One session: its connection, what its watchdog saw, and the tool it has.

    Args:
        url: Of the server.
        clock: Of all sessions.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        events = Events(clock, out=lambda *_, **__: None)
        self.connections = Connections(
            lambda ears: WireLink(url, ears), lambda at: Watchdog(now=at), clock, events, listener=self
        )
        self.voice = Voice(clock, events, self._send, replay=False)
        self.pongs_s: list[float] = []
        self.losses: list[tuple[Line, Loss]] = []
        self.messages = 0
        self.ended = 0

    async def open(self) -> None:
        """Set the session up."""
        self.connections.adopt(await self.connections.attempt(setup_of(MODEL, None), timeout_s=SETUP_S))

    async def speak(self, number: int) -> None:
        """Speak until cancelled; the clips of one speaker begin beside those of the others."""
        await asyncio.sleep(number * 0.617 % 5.0)
        while True:
            for name in SAID:
                await self.voice.say(load(name))

    def on_message(self, line: Line, message: ServerMessage) -> None:
        """Answer calls at once."""
        self.messages += 1
        for call in message.tool_call.function_calls if message.tool_call is not None else ():
            line.link.send(ToolResponse((_booked(call),)))

    def on_lost(self, line: Line, loss: Loss) -> None:
        """Keep it."""
        self.losses.append((line, loss))

    def on_path_back(self, line: Line) -> None:
        """Nothing was wrong, then."""

    def on_pong(self, line: Line, sent_at: float) -> None:  # noqa: ARG002 - the signature is the listener's
        """Keep how long it took."""
        self.pongs_s.append(time.monotonic() - sent_at)

    def on_ended(self, line: Line, ending: Ending) -> None:  # noqa: ARG002
        """Count it."""
        self.ended += 1

    def _send(self, message: RealtimeInput) -> bool:
        if (line := self.connections.live) is None:
            return False
        line.link.send(message)
        return True


def _booked(call: FunctionCall) -> FunctionResponse:
    return FunctionResponse(call.id, call.name, {"status": "booked", "confirmation_id": "BK-1001"})


class Crowd:
    """All sessions of this process.

    Args:
        port: Of the server.
        count: Sessions.
        speaking: How many of them speak.
    """

    def __init__(self, port: int, count: int, speaking: int) -> None:
        clock, url = Clock(), endpoint(f"ws://127.0.0.1:{port}")
        self.assistants = [Assistant(url, clock) for _ in range(count)]
        self._speaking = speaking
        self._speakers: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Set all up, and let some begin to speak."""
        gate = asyncio.Semaphore(OPENING)

        async def opened(assistant: Assistant) -> None:
            async with gate:
                await assistant.open()

        await asyncio.gather(*map(opened, self.assistants))
        loop = asyncio.get_running_loop()
        chosen = enumerate(self.assistants[: self._speaking])
        self._speakers = [loop.create_task(assistant.speak(number)) for number, assistant in chosen]

    async def measure(self, seconds: float) -> dict[str, Any]:
        """What is seen in so many seconds."""
        for each in self.assistants:
            each.pongs_s.clear()
            each.connections.lateness_s.clear()
        before_s, began = _cpu_s(), time.monotonic()
        await asyncio.sleep(seconds)
        return {
            "cpu_s": _cpu_s() - before_s,
            "took_s": time.monotonic() - began,
            "late_s": [late_s for each in self.assistants for late_s in each.connections.lateness_s],
            "pongs_s": [pong_s for each in self.assistants for pong_s in each.pongs_s],
            "messages": sum(each.messages for each in self.assistants),
            "alarms": sum(len(each.losses) for each in self.assistants),
            "ended": sum(each.ended for each in self.assistants),
        }

    async def losses(self, seconds: float) -> dict[str, Any]:
        """Wait for every watchdog's word, and by how much each was late."""
        for speaker in self._speakers:
            speaker.cancel()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not all(each.losses for each in self.assistants):
            await asyncio.sleep(0.05)
        found = [loss for each in self.assistants for loss in each.losses]
        return {
            "silent_s": [loss.at - line.heard_at for line, loss in found],
            "late_s": [loss.at - line.heard_at - line.watchdog.patience_s for line, loss in found],
        }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def say(**fields: Any) -> None:
    """A line for whoever started this."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


async def main(port: int, count: int, speaking: int) -> None:
    """Obey until standard input ends."""
    crowd = Crowd(port, count, speaking)
    await crowd.open()
    say(event="ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        what, seconds = line.split()
        say(**await {"measure": crowd.measure, "losses": crowd.losses}[what](float(seconds)))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
