import asyncio
from pathlib import Path

from lab.live.client.backend import Fault
from lab.live.client.bookings import Bookings
from lab.live.recovery.policy import Policy
from tests.live.client.acting import acting
from tests.live.client.fake import FakeServer, serving

BOOK = {"do": "say", "clip": "book"}
CALLED = {"do": "await", "event": "tool_call"}
SENT = {"do": "await", "event": "result_sent"}
ABORT = {"do": "drop", "how": "abort"}
TRY_TWICE = {"do": "resume", "at": [0, 0.4]}


def test_a_booking_without_a_loss_is_made_once_and_told_truly() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run(BOOK, {"do": "await", "event": "model_said"}, {"do": "ask"})

            assert acted.ok
            assert acted.one("bookings")["count"] == 1
            answer = acted.one("answer")
            assert (answer["says"], answer["truth"], answer["consistent"]) == ("booked", "booked", True)
            assert [response.id for response in server.responses] == ["call-1"]

    asyncio.run(scenario())


def test_after_an_abort_the_second_attempt_is_accepted_and_the_result_sent_once() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(settle_s=0.3)) as server, acting(server.url, commit_after_s=0.1) as acted:
            await acted.run(BOOK, CALLED, ABORT, TRY_TWICE, SENT, {"do": "await", "event": "model_said"}, {"do": "ask"})

            refused = acted.one("refused")
            assert (refused["code"], refused["phase"]) == (1011, "setup")
            assert acted.one("resumed")["since_lost_s"] >= 0.4
            assert [response.id for response in server.responses] == ["call-1"]
            assert acted.one("result_sent")["attempt"] == 3
            assert acted.one("answer")["consistent"]
            assert server.setups[1].session_resumption is not None
            assert server.setups[1].session_resumption.handle == "handle-1"

    asyncio.run(scenario())


def test_a_result_that_is_held_back_is_never_sent_and_the_answer_is_judged_untrue() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run(
                BOOK, CALLED, {"do": "hold-result"}, {"do": "await", "event": "committed", "plus": 0.1}, {"do": "ask"}
            )

            answer = acted.one("answer")
            assert (answer["says"], answer["truth"], answer["consistent"]) == ("in progress", "booked", False)
            assert answer["commit_age_s"] > 0.1
            assert server.responses == []
            assert acted.one("ledger")["due"] == ["call-1"]

    asyncio.run(scenario())


def test_a_clean_close_by_the_script_is_a_drop_and_no_loss() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run(BOOK, CALLED, {"do": "drop", "how": "close"}, {"do": "await", "event": "closed"}, TRY_TWICE)

            closed = acted.one("closed")
            assert (closed["code"], closed["by"]) == (1000, "us")
            assert acted.named("lost") == []
            assert acted.one("resumed")["attempt"] == 2

    asyncio.run(scenario())


def test_a_locked_session_is_given_up_for_a_new_one_that_is_told_what_was_said() -> None:
    async def scenario() -> None:
        policy = Policy(window_s=1.5, every_s=0.5)
        async with serving(FakeServer(locked=True)) as server, acting(server.url, policy=policy) as acted:
            await acted.run(
                BOOK, SENT, {"do": "await", "event": "model_said"}, ABORT, {"do": "recover"},
                {"do": "await", "event": "model_said"},
            )  # fmt: skip

            assert acted.ok
            assert 1 <= len(acted.named("refused")) <= 4
            assert acted.named("resumed") == []
            assert acted.one("fallback")["attempt"] == len(acted.named("connecting"))
            (history,) = server.histories
            assert history.turns[0].text == "Book me the 3pm slot tomorrow, please."
            assert "BK-1001" in history.turns[-1].text
            assert acted.one("bookings")["count"] == 1

    asyncio.run(scenario())


def test_a_call_that_comes_again_under_another_id_books_nothing() -> None:
    async def scenario() -> None:
        policy = Policy(window_s=0.0, every_s=0.1, note=False)
        async with (
            serving(FakeServer(locked=True, reissues=True)) as server,
            acting(server.url, policy=policy) as acted,
        ):
            await acted.run(
                BOOK, SENT, ABORT, {"do": "recover"}, {"do": "await", "event": "reissued"},
                {"do": "await", "event": "result_sent"},
            )  # fmt: skip

            assert dict(acted.one("reissued")) == {"id": "call-2", "duplicate_of": "call-1"}
            assert acted.one("bookings")["count"] == 1
            assert server.responses[-1].response["duplicate_of"] == "call-1"
            assert server.responses[-1].response["confirmation_id"] == "BK-1001"

    asyncio.run(scenario())


def test_without_deduplication_the_same_call_books_twice() -> None:
    async def scenario() -> None:
        policy = Policy(window_s=0.0, every_s=0.1, note=False, dedupe=False)
        async with (
            serving(FakeServer(locked=True, reissues=True)) as server,
            acting(server.url, policy=policy) as acted,
        ):
            await acted.run(BOOK, SENT, ABORT, {"do": "recover"}, SENT)

            assert acted.one("bookings")["count"] == 2

    asyncio.run(scenario())


def test_the_same_call_delivered_twice_runs_once() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(announces=False)) as server, acting(server.url) as acted:
            running = asyncio.ensure_future(acted.run(BOOK, SENT, {"do": "await", "event": "asked_again"}))
            await acted.events.wait_for("result_sent")
            await server.call(1)
            await running

            assert acted.one("bookings")["count"] == 1

    asyncio.run(scenario())


def test_a_plain_loop_of_attempts_keeps_its_pace_from_start_to_start() -> None:
    async def scenario() -> None:
        async with serving(FakeServer(locked=True)) as server, acting(server.url) as acted:
            await acted.run(BOOK, CALLED, ABORT, {"do": "resume", "at": [0], "every": 0.1, "until": 0.5})

            assert len(acted.named("refused")) == 6
            assert acted.one("not_resumed") == {}
            began = acted.named("drop")[0].t
            starts = [event.t - began for event in acted.named("connecting")[1:]]
            assert all(start >= number * 0.1 for number, start in enumerate(starts))

    asyncio.run(scenario())


def test_a_backend_that_refuses_is_told_as_failed() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url, fault=Fault.FAIL) as acted:
            await acted.run(BOOK, SENT)

            assert server.responses[0].response["status"] == "failed"
            assert acted.one("bookings")["count"] == 0
            assert acted.one("not_committed")["error"]

    asyncio.run(scenario())


def test_a_full_disk_is_told_as_failed_and_books_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = tmp_path / "bookings.sqlite"
        async with serving(FakeServer()) as server, acting(server.url, fault=Fault.FULL_DISK, bookings=file) as acted:
            await acted.run(BOOK, SENT)

            assert "full" in server.responses[0].response["error"]
            assert Bookings(file).count() == 0

    asyncio.run(scenario())


def test_a_backend_that_never_commits_leaves_the_result_out_and_the_answer_true() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url, fault=Fault.NEVER) as acted:
            await acted.run(BOOK, CALLED, {"do": "ask"})

            assert server.responses == []
            assert acted.one("answer")["consistent"]

    asyncio.run(scenario())


def test_a_wanted_close_is_never_followed_by_a_connection() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run(BOOK, CALLED, {"do": "drop", "how": "close"}, {"do": "watch", "for": 0.5})

            assert len(server.setups) == 1

    asyncio.run(scenario())


def test_a_script_that_waits_in_vain_is_stuck_and_still_gives_its_account() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run({"do": "await", "event": "tool_call", "timeout": 0.2})

            assert acted.ok is False
            assert acted.one("stuck") == {"step": 1, "do": "await", "why": "no tool_call within 0.2 s"}
            assert acted.one("bookings")["count"] == 0
            assert acted.one("done") == {"ok": False}

    asyncio.run(scenario())


def test_an_event_that_came_while_results_were_held_back_still_counts() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url) as acted:
            await acted.run(BOOK, {"do": "watch", "for": 0.2}, {"do": "hold-result"}, CALLED)

            assert acted.ok

    asyncio.run(scenario())


def test_speech_during_a_gap_is_said_again_after_it() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url, text=False, replay=True) as acted:
            await acted.run(
                ABORT, {"do": "say", "clip": "hello"}, {"do": "resume", "at": [0]}, {"do": "watch", "for": 0.3}
            )

            assert acted.one("replayed")["seconds"] == 1.1
            assert server.audio_bytes == 11 * 3200

    asyncio.run(scenario())


def test_speech_during_a_gap_is_lost_without_the_replay() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, acting(server.url, text=False) as acted:
            await acted.run(
                ABORT, {"do": "say", "clip": "hello"}, {"do": "resume", "at": [0]}, {"do": "watch", "for": 0.3}
            )

            assert acted.named("replayed") == []
            assert server.audio_bytes == 0

    asyncio.run(scenario())
