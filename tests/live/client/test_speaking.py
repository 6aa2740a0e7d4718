import asyncio
import time
from collections.abc import Awaitable, Callable

from lab.live.client.events import Events
from lab.live.client.speaking import Voice
from lab.live.clock import Clock
from lab.live.protocol.messages import RealtimeInput
from lab.live.timelapse import Lapse
from lab.live.voice.clips import Clip

CLIP = Clip("short", "Hi.", bytes(3200 * 2 + 100))
"""A little more than 0.2 s."""


class Mouth:
    """A voice, and the connection that it has, or has not."""

    def __init__(self, *, replay: bool) -> None:
        self.clock = Clock()
        self.events = Events(self.clock, lambda *_, **__: None)
        self.live = True
        self.sent: list[RealtimeInput] = []
        self.voice = Voice(self.clock, self.events, self._send, replay=replay)

    def _send(self, message: RealtimeInput) -> bool:
        if self.live:
            self.sent.append(message)
        return self.live

    def texts(self) -> list[str | None]:
        return [message.text for message in self.sent]


def speak(scene: Callable[[Mouth], Awaitable[None]], *, replay: bool = True) -> None:
    async def scenario() -> None:
        mouth = Mouth(replay=replay)
        mouth.clock.enter(Lapse(time.monotonic(), 20))
        await scene(mouth)

    asyncio.run(scenario())


def test_a_clip_takes_its_own_time_and_a_silence_after_it() -> None:
    async def scene(mouth: Mouth) -> None:
        began = mouth.clock.now()
        await mouth.voice.say(CLIP)

        assert mouth.clock.now() - began >= 1.2
        assert sum(len(message.audio.data) for message in mouth.sent if message.audio) == len(CLIP.pcm) + 32_000
        (said,) = mouth.events.log
        assert said.fields == {"clip": "short", "text": "Hi."}
        assert said.t - began >= 0.3

    speak(scene)


def test_what_has_not_arrived_at_a_loss_is_said_again() -> None:
    async def scene(mouth: Mouth) -> None:
        mouth.voice.type("one")
        mouth.voice.arrived(mouth.clock.now())
        mouth.voice.type("two")
        mouth.live = False
        mouth.voice.on_lost()
        mouth.voice.type("three")
        mouth.live = True
        mouth.voice.on_live()

        assert mouth.texts() == ["one", "two", "two", "three"]
        assert mouth.events.log[-1].fields == {"seconds": 0, "texts": ["two", "three"]}

    speak(scene)


def test_a_second_loss_right_after_the_replay_loses_nothing() -> None:
    async def scene(mouth: Mouth) -> None:
        mouth.live = False
        mouth.voice.type("one")
        for _ in range(2):
            mouth.live = True
            mouth.voice.on_live()
            mouth.live = False
            mouth.voice.on_lost()
        mouth.live = True
        mouth.voice.on_live()

        assert mouth.texts() == ["one"] * 3

    speak(scene)


def test_without_the_replay_it_is_told_what_was_said_to_nobody() -> None:
    async def scene(mouth: Mouth) -> None:
        mouth.live = False
        mouth.voice.type("one")
        await mouth.voice.say(CLIP)
        mouth.live = True
        mouth.voice.on_live()

        assert mouth.sent == []
        assert [event.name for event in mouth.events.log] == ["not_sent", "said"]
        assert 1.2 < mouth.voice.lost_s < 1.3

    speak(scene, replay=False)
