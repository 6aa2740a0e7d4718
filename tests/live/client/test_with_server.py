"""The assistant and the lab's own session server, over loopback."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from lab.live.client.backend import Fault
from lab.live.recovery.policy import Policy
from lab.live.server.parts import scripted
from lab.live.server.serving import Options, Serving, serving
from lab.live.session.profile import DEFAULT, Profile, find
from lab.live.voice.clips import load
from tests.live.client.acting import Acted, acting
from tests.live.client.path import Path, path_to

QUICK = {
    "setup_s": "0.01", "resume_setup_s": "0.02", "refusal_s": "0.03", "call_s": "0.01", "reply_s": "0.02",
    "announce_s": "0.02", "restored_reply_s": "0.02", "reissue_s": "0.02", "words_per_s": "40",
}  # fmt: skip
"""The profile's waits, but for those that a test is about."""

BOOK = {"do": "say", "clip": "book"}
CALLED = {"do": "await", "event": "tool_call"}
SENT = {"do": "await", "event": "result_sent"}
HEARD_OUT = {"do": "await", "event": "turn_complete"}
ABORT = {"do": "drop", "how": "abort"}
LOST = {"do": "await", "event": "lost"}
ASK = {"do": "ask"}

Scene = Callable[[Serving, Path, Acted], Awaitable[None]]


@contextlib.asynccontextmanager
async def served(profile: Profile, **options: Any) -> AsyncIterator[tuple[Serving, Path]]:
    wanted: dict[str, Any] = {"host": "127.0.0.1", "status_host": "127.0.0.1", "status_port": 0, "seed": 1} | options
    async with (
        serving(Options(profile=profile, **wanted), scripted(), tell=lambda *_, **__: None) as server,
        path_to(f"ws://127.0.0.1:{server.port('ws')}") as path,
    ):
        yield server, path


def play(scene: Scene, profile: Profile = DEFAULT, **options: Any) -> None:
    """Let a server, a path and an assistant meet."""

    async def scenario() -> None:
        quick = profile.with_(**QUICK)
        async with (
            served(quick) as (server, path),
            acting(path.url, status=f"http://127.0.0.1:{server.status_port}", **options) as acted,
        ):
            await scene(server, path, acted)

    asyncio.run(scenario())


def states(server: Serving) -> list[str]:
    status = server.shell.house.status(now=server.shell.clock.now())
    return [each.state for each in status.sessions]


def test_an_idle_abort_is_refused_and_accepted_one_and_a_half_seconds_later() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(
            {"do": "hold-result"}, BOOK, CALLED, ABORT, {"do": "resume", "at": [0, 1.5]}, {"do": "send-result"}, SENT,
            HEARD_OUT, ASK,
        )  # fmt: skip

        refused = acted.one("refused")
        assert (refused["code"], refused["reason"]) == (1011, "Internal error encountered.")
        assert 1.5 <= acted.one("resumed")["since_lost_s"] < 3.0
        assert acted.one("answer")["consistent"]
        assert acted.one("bookings")["count"] == 1

    play(scene)


def test_told_nothing_the_model_says_that_it_is_still_booking() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(
            {"do": "hold-result"}, BOOK, CALLED, ABORT, {"do": "resume", "at": [1.1]}, {"do": "watch", "for": 0.1}, ASK
        )

        answer = acted.one("answer")
        assert (answer["says"], answer["truth"], answer["consistent"]) == ("in progress", "booked", False)

    play(scene)


def test_without_a_call_the_model_says_that_nothing_is_booked() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run({"do": "say", "clip": "hello"}, HEARD_OUT, ABORT, {"do": "resume", "at": [1.1]}, ASK)

        answer = acted.one("answer")
        assert (answer["says"], answer["truth"], answer["consistent"]) == ("nothing", "nothing", True)

    play(scene)


def test_a_plain_loop_is_refused_for_as_long_as_the_server_holds_the_dark_connection() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:
        path_freezes(path, acted)
        await acted.run(
            {"do": "hold-result"}, BOOK, CALLED, {"do": "watch", "for": 0.7}, {"do": "mark", "name": "freeze"}, LOST,
            {"do": "resume", "at": [], "every": 0.25, "until": 1.9},
        )  # fmt: skip

        assert len(acted.named("refused")) == 8
        assert acted.one("not_resumed") == {}
        assert states(server) == ["attached"]

    play(scene)


def test_the_recovery_tells_a_new_session_the_truth_and_books_once() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:
        path_freezes(path, acted)
        await acted.run(
            BOOK,
            CALLED,
            {"do": "watch", "for": 0.7},
            {"do": "mark", "name": "freeze"},
            LOST,
            {"do": "recover"},
            HEARD_OUT,
            ASK,
        )

        assert acted.one("fallback")
        assert acted.named("reissued") == []
        assert acted.one("answer")["consistent"]
        assert acted.one("bookings")["count"] == 1
        assert len(states(server)) == 2

    play(scene, policy=Policy(window_s=0.5, every_s=0.25), commit_after_s=1.0)


def test_without_the_note_the_model_calls_again_and_nothing_is_booked_twice() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(BOOK, CALLED, ABORT, {"do": "recover"}, {"do": "await", "event": "reissued"}, SENT, HEARD_OUT)

        first, again = acted.named("tool_call")
        assert acted.one("reissued") == {"id": again.fields["id"], "duplicate_of": first.fields["id"]}
        assert acted.one("bookings")["count"] == 1

    play(scene, policy=Policy(window_s=0.0, note=False), commit_after_s=0.5)


def test_without_the_note_and_without_deduplication_it_is_booked_twice() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(BOOK, CALLED, ABORT, {"do": "recover"}, SENT, {"do": "watch", "for": 0.3})

        assert acted.one("bookings")["count"] == 2

    play(scene, policy=Policy(window_s=0.0, note=False, dedupe=False), commit_after_s=0.5)


def test_a_commit_after_the_restore_is_told_in_an_update_note() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(
            BOOK, CALLED, ABORT, {"do": "recover"}, HEARD_OUT, {"do": "await", "event": "update_note"}, HEARD_OUT, ASK
        )

        assert acted.one("answer")["says"] == "booked"
        assert acted.named("result_sent") == []
        assert acted.one("bookings")["count"] == 1

    play(scene, policy=Policy(window_s=0.0), commit_after_s=2.5)


def test_a_parallel_new_session_is_ready_before_a_locked_one_is_given_up() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:
        path_freezes(path, acted)
        await acted.run(
            BOOK,
            SENT,
            HEARD_OUT,
            {"do": "watch", "for": 0.7},
            {"do": "mark", "name": "freeze"},
            LOST,
            {"do": "recover"},
            HEARD_OUT,
        )

        assert acted.one("fallback")["since_lost_s"] < 3.0  # The window alone lasts 4 s.
        assert acted.one("bookings")["count"] == 1
        assert len(states(server)) == 2

    play(scene, policy=Policy(parallel=True))


def test_slow_pongs_are_no_loss() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run({"do": "watch", "for": 6.0})

        assert acted.named("lost") == []

    play(scene, DEFAULT.with_(pong_delay_s="3.0"))


@pytest.mark.parametrize(
    ("fault", "says"), [(Fault.FAIL, "failed"), (Fault.FULL_DISK, "failed"), (Fault.NEVER, "in progress")]
)
def test_a_backend_that_books_nothing_is_told_as_it_is(fault: Fault, says: str) -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        after = {"do": "watch", "for": 0.5} if fault is Fault.NEVER else HEARD_OUT
        await acted.run(BOOK, CALLED, after, ASK)

        answer = acted.one("answer")
        assert (answer["says"], answer["consistent"]) == (says, True)
        assert acted.one("bookings")["count"] == 0

    play(scene, fault=fault)


def test_a_dead_handle_ends_the_window_at_once() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(BOOK, SENT, HEARD_OUT, ABORT)
        acted.assistant.handle = "00000000-0000-0000-0000-000000000000"
        await acted.assistant.recover()

        assert acted.named("refused")[-1].fields["code"] == 1007
        assert len(acted.named("refused")) == 1
        assert acted.one("handle_dead")
        assert acted.named("fallback")

    play(scene, find("dead-handle-1007"), policy=Policy(window_s=4.0))


def test_a_setup_that_asks_for_transparency_is_refused_with_the_services_sentence() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run({"do": "connect", "transparent": True, "may_fail": True})

        refused = acted.one("refused")
        assert refused["code"] == 1007
        assert "Unknown name \"transparent\" at 'setup.session_resumption'" in refused["reason"]
        assert acted.ok

    play(scene)


def test_a_lapse_hurries_both_sides_by_the_same_factor() -> None:
    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run({"do": "lapse", "factor": 40}, {"do": "watch", "for": 30}, {"do": "lapse", "factor": 1})

        apart_s = server.shell.clock.now() - acted.assistant.clock.now()
        first, last = acted.events.log[0], acted.events.log[-1]
        assert abs(apart_s) < 0.01
        assert last.t - first.t > 30
        assert last.at - first.at < 5
        lapsed = acted.one("lapsed")
        assert lapsed["factor"] == 40
        assert lapsed["looks"] > 5
        assert 0 <= lapsed["late_p50_s"] <= lapsed["late_most_s"] < 5

    play(scene)


def test_a_spoken_request_is_heard_and_booked() -> None:
    pytest.importorskip("pocketsphinx", reason="nobody understands speech here")

    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        await acted.run(BOOK, CALLED, SENT, HEARD_OUT)

        assert acted.one("heard")["text"] == "book me the three p m slot tomorrow please"
        assert acted.one("tool_call")["args"] == {"slot": "tomorrow 3pm"}
        assert acted.one("said")["text"] == "Book me the 3pm slot tomorrow, please."

    play(scene, text=False, clips=load)


def test_what_was_said_in_the_dark_is_heard_after_it() -> None:
    pytest.importorskip("pocketsphinx", reason="nobody understands speech here")

    async def scene(server: Serving, path: Path, acted: Acted) -> None:  # noqa: ARG001
        path_freezes(path, acted)
        await acted.run(
            {"do": "watch", "for": 0.7},
            {"do": "mark", "name": "freeze"},
            BOOK,
            {"do": "recover"},
            CALLED,
            SENT,
            HEARD_OUT,
        )

        assert acted.one("lost")["by"] == "silence"
        assert acted.one("replayed")["seconds"] > 3.0
        assert acted.one("heard")["text"] == "book me the three p m slot tomorrow please"
        assert acted.one("bookings")["count"] == 1

    play(scene, text=False, clips=load, replay=True, policy=Policy(window_s=0.0))


def path_freezes(path: Path, acted: Acted) -> None:
    """The path goes dark at the mark of that name."""

    async def obey() -> None:
        await acted.events.wait_for("mark")
        path.freeze()

    acted.keep(asyncio.ensure_future(obey()))
