import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lab.live.client.talk import Talk
from lab.live.recovery.policy import Policy
from tests.live.client.acting import Acted, acting
from tests.live.client.fake import FakeServer, serving

Scene = Callable[[FakeServer, Talk, Acted], Awaitable[None]]

DEADLINE_S = 20.0


def talk(scene: Scene, server: FakeServer | None = None, **options: Any) -> None:
    """Let a person talk, until the scene is over, and the talk too."""

    async def scenario() -> None:
        async with serving(server or FakeServer()) as made, acting(made.url, **options) as acted:
            talking = Talk(acted.assistant)
            running = asyncio.ensure_future(talking.run())
            async with asyncio.timeout(DEADLINE_S):
                await scene(made, talking, acted)
                acted.ok = await running

    asyncio.run(scenario())


def test_what_is_typed_is_said_and_quit_closes_the_connection() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:
        talking.hear("Book it")
        await acted.events.wait_for("model_said")
        talking.hear("/quit")
        await acted.events.wait_for("bookings")

        assert server.closes == [1000]
        assert acted.one("bookings")["count"] == 1
        assert acted.named("lost") == []

    talk(scene)


def test_the_end_of_the_input_is_a_quit() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:
        talking.hear(None)
        await acted.events.wait_for("bookings")

        assert len(server.setups) == 1

    talk(scene)


def test_a_connection_that_the_server_ends_is_recovered_without_being_asked() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:
        await acted.events.wait_for("handle")
        await server.connections[-1].close(1011, "Internal error encountered.")
        await acted.events.wait_for("resumed")
        talking.hear("/quit")
        await acted.events.wait_for("bookings")

        assert acted.one("lost")["by"] == "closed"

    talk(scene)


def test_a_connection_that_the_server_will_end_is_left_before() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:
        from lab.live.protocol.messages import GoAway, ServerMessage

        await acted.events.wait_for("handle")
        await server.send(ServerMessage(go_away=GoAway(50.0)))
        await acted.events.wait_for("resumed")
        talking.hear("/quit")
        await acted.events.wait_for("bookings")

        assert server.closes[0] == 1000
        assert acted.named("lost") == []

    talk(scene)


def test_it_ends_when_the_policy_gives_up() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:  # noqa: ARG001
        await acted.events.wait_for("handle")
        talking.hear("/drop")
        await acted.events.wait_for("given_up")

    talk(scene, FakeServer(locked=True), policy=Policy(window_s=0.2, every_s=0.1, fallback=False))


def test_an_unknown_word_and_an_unknown_clip_are_explained() -> None:
    async def scene(server: FakeServer, talking: Talk, acted: Acted) -> None:  # noqa: ARG001
        talking.hear("/jump")
        await acted.events.wait_for("help")
        talking.hear("/quit")
        await acted.events.wait_for("bookings")

        assert "/quit ends" in acted.one("help")["text"]

    talk(scene)
