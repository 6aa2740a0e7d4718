"""A connection that goes dark without anybody being told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lab.live.recovery.policy import Policy
from tests.live.client.acting import Acted, acting
from tests.live.client.fake import FakeServer, serving
from tests.live.client.path import Path, path_to

BOOK = {"do": "say", "clip": "book"}
CALLED = {"do": "await", "event": "tool_call"}
LOST = {"do": "await", "event": "lost"}

LATE_S = 1.0
"""For a machine that is busy with other tests."""

Scene = Callable[[FakeServer, Path, Acted], Awaitable[None]]


def play(scene: Scene, server: FakeServer | None = None, **options: Any) -> None:
    """Let a server, a path and an assistant meet."""

    async def scenario() -> None:
        async with (
            serving(server or FakeServer()) as made,
            path_to(made.url) as path,
            acting(path.url, **options) as acted,
        ):
            await scene(made, path, acted)

    asyncio.run(scenario())


async def frozen(path: Path, acted: Acted, *steps: Mapping[str, Any]) -> None:
    """Run steps; the path goes dark at the mark ``freeze`` and comes back at ``thaw``."""

    async def obey() -> None:
        after = 0
        while True:
            place, mark = await acted.events.wait_for("mark", after=after)
            after = place + 1
            (path.freeze if mark.fields["name"] == "freeze" else path.thaw)()

    obeying = asyncio.ensure_future(obey())
    try:
        await acted.run(*steps)
    finally:
        obeying.cancel()
        await asyncio.gather(obeying, return_exceptions=True)


FREEZE = {"do": "mark", "name": "freeze"}
THAW = {"do": "mark", "name": "thaw"}


def test_the_watchdog_notices_it_one_and_a_half_to_two_seconds_later() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await frozen(path, acted, BOOK, {"do": "watch", "for": 1.2}, FREEZE, LOST)

        lost, mark = acted.named("lost")[0], acted.named("mark")[0]
        assert 1.4 <= lost.at - mark.at <= 2.0 + LATE_S
        assert 2.0 <= lost.fields["silent_s"] <= 2.0 + LATE_S
        assert lost.fields["by"] == "silence"

    play(scene)


def test_a_healthy_silent_link_is_no_loss() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run({"do": "watch", "for": 3.0})

        assert acted.named("lost") == []
        assert acted.one("watchdog")["looks"] >= 5

    play(scene)


def test_the_path_back_makes_the_old_connection_usable_for_the_result() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        await frozen(
            path, acted,
            BOOK, CALLED, {"do": "hold-result"}, FREEZE, LOST, THAW, {"do": "await", "event": "path_back"},
            {"do": "reuse-old"}, {"do": "send-result"}, {"do": "await", "event": "model_said"}, {"do": "ask"},
        )  # fmt: skip

        assert acted.ok
        assert acted.one("path_back")["attempt"] == 1
        assert acted.one("result_sent")["attempt"] == 1
        assert [response.id for response in server.responses] == ["call-1"]
        assert acted.one("answer")["consistent"]

    play(scene)


def test_attempts_pass_while_the_old_connection_stays_open_and_dark() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        await frozen(
            path,
            acted,
            BOOK,
            CALLED,
            FREEZE,
            LOST,
            {"do": "resume", "at": [0, 0.2]},
            {"do": "await", "event": "result_sent"},
        )

        assert acted.one("resumed")["attempt"] == 2
        assert server.closes == []
        assert len(acted.assistant.connections.lost()) == 1

    play(scene)


def test_a_close_on_the_dark_connection_arrives_when_the_path_is_back() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        await frozen(
            path, acted, BOOK, CALLED, FREEZE, LOST, {"do": "close-old"}, {"do": "watch", "for": 0.3}, THAW,
            {"do": "await", "event": "closed"},
        )  # fmt: skip

        assert acted.one("close_old")["attempt"] == 1
        closed = acted.one("closed")
        assert (closed["code"], closed["by"]) == (1000, "us")
        assert closed["attempt"] == 1
        assert server.closes == [1000]

    play(scene)


def test_the_recovery_ends_in_a_new_session_while_the_server_holds_the_old_one() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        await frozen(
            path, acted, BOOK, {"do": "await", "event": "model_said"}, FREEZE, LOST, {"do": "recover"},
            {"do": "await", "event": "model_said"}, {"do": "ask"},
        )  # fmt: skip

        assert acted.one("fallback")
        assert acted.one("answer")["consistent"]
        assert len(server.histories) == 1
        assert acted.one("bookings")["count"] == 1

    play(scene, FakeServer(locked=True), policy=Policy(window_s=0.5, every_s=0.2))


def test_when_the_path_is_back_in_the_window_the_old_connection_is_closed_and_the_session_resumed() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        async def unlock() -> None:
            await acted.events.wait_for("refused")
            path.thaw()
            await acted.events.wait_for("closed")
            server.locked = False

        unlocking = asyncio.ensure_future(unlock())
        await frozen(
            path, acted, BOOK, CALLED, FREEZE, LOST, {"do": "recover"}, {"do": "await", "event": "result_sent"}
        )
        await unlocking

        assert acted.one("resumed")
        assert acted.named("fallback") == []
        assert server.closes[0] == 1000

    play(scene, FakeServer(locked=True), policy=Policy(close_old=False))


def test_a_second_loss_after_a_fallback_is_met_as_the_first() -> None:
    async def scene(server: FakeServer, path: Path, acted: Acted) -> None:
        twice = (FREEZE, LOST, {"do": "recover"}, {"do": "await", "event": "model_said"})
        await frozen(path, acted, BOOK, {"do": "await", "event": "model_said"}, *twice, *twice, {"do": "ask"})

        assert acted.ok
        assert len(acted.named("fallback")) == 2
        assert acted.one("answer")["consistent"]
        assert acted.one("bookings")["count"] == 1
        assert len(server.histories) == 2

    play(scene, FakeServer(locked=True), policy=Policy(window_s=0.5, every_s=0.25))
