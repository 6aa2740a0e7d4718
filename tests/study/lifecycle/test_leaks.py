"""The leak table on a few paths against one server in a hurry, and against sessions that cheat; the experiments run all
of it."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB, PUBLISHED, ClosedHere, LiveSession, Variant
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.study.lifecycle import leaks, ways
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.leaks import LeakRow
from lab.study.lifecycle.stage import Left, Reading, Stage, left
from lab.study.lifecycle.witnesses import Trial, Watch
from tests.study.lifecycle.scenes import DEADLINE_S, HURRIED

WATCH_S = 0.2
FEW = (ways.RELEASED, ways.CLOSED, ways.CONNECTING, ways.STANDING)


def measured(variant: Variant, *paths: str, to_the_limit: bool = False) -> list[LeakRow]:
    return asyncio.run(leaks.rows([variant], [HURRIED], paths, watch_s=WATCH_S, to_the_limit=to_the_limit))


@functools.cache
def published() -> dict[str, LeakRow]:
    return {row.path: row for row in measured(PUBLISHED, *FEW, to_the_limit=True)}


@functools.cache
def labs() -> dict[str, LeakRow]:
    return {row.path: row for row in measured(LAB, *FEW)}


@pytest.mark.parametrize("path", FEW)
def test_however_the_labs_session_is_left_all_three_witnesses_see_its_end(path: str) -> None:
    row = labs()[path]

    assert row.ok, row
    assert (row.how, row.server_limit_s) == ("close frame", None)
    assert row.closed_in_s is not None
    assert row.socket_over_in_s is not None
    assert (row.stream_ended_in_s is None) is (path == ways.CLOSED)


@pytest.mark.parametrize("path", [path for path in FEW if path != ways.CLOSED])
def test_released_as_published_it_stays_until_the_servers_limit(path: str) -> None:
    row = published()[path]

    assert not row.ok
    assert (row.closed_in_s, row.stream_finished, row.service_kept, row.socket) == (None, False, True, "established")
    if path in ways.SILENT:
        assert row.server_limit_s is None
    else:
        assert row.server_limit_s is not None
        assert 15 < row.server_limit_s < 80, "20 s of silence; a busy machine sees it late, and in a lapse of 100"


def test_a_closed_session_that_is_held_says_so_and_its_stream_stays_open() -> None:
    row = labs()[ways.CLOSED]

    assert (row.is_closed, row.stream_finished, published()[ways.CLOSED].ok) == ([False, True], False, True)


def test_released_again_and_again_every_one_ends() -> None:
    found = asyncio.run(leaks.repeated(LAB, HURRIED, 10))

    assert (found.closed, found.ok) == (10, True)


def test_many_more_are_released_in_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = []
    monkeypatch.setattr(leaks, "WAVE", 4)

    class Counting(Watch):
        async def until_over(self, watch_s: float) -> None:
            at_once.append(len(self.trials))
            await super().until_over(watch_s)

    monkeypatch.setattr(leaks, "Watch", Counting)
    found = asyncio.run(leaks.repeated(LAB, HURRIED, 10))

    assert at_once == [4, 4, 2]
    assert (found.runs, found.closed, found.ok) == (10, 10, True)


def test_a_row_is_what_the_contract_says() -> None:
    (first, *_) = leaks.as_json(labs().values())

    assert {"variant", "profile", "path", "closed_in_s", "stream_finished", "ok"} <= first.keys()


# Sessions that cheat: each of these passed for an end once, or would.


def in_place_of_released(way: Callable[[Stage], Awaitable[Left]], monkeypatch: pytest.MonkeyPatch) -> LeakRow:
    monkeypatch.setattr(ways, "WAYS", {**ways.WAYS, ways.RELEASED: way})
    (row,) = measured(LAB, ways.RELEASED)
    return row


def abort(session: LiveSession) -> None:
    socket = session._service._socket
    assert socket is not None
    socket._wire._connection.transport.abort()  # type: ignore[attr-defined]


def test_a_stream_that_never_finishes_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stream, "finish", lambda _: None)

    (row,) = measured(LAB, ways.RELEASED)

    assert (row.ok, row.stream_finished) == (False, False)


def test_a_connection_that_was_aborted_before_it_was_left_is_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def way(stage: Stage) -> Left:
        session, life, reading = await stage.opened()
        abort(session)
        async with asyncio.timeout(DEADLINE_S):
            while life.ended_at is None:
                await asyncio.sleep(0.001)
        return left(session, life, reading)

    with pytest.raises(InvalidRun, match="before it was left"):
        in_place_of_released(way, monkeypatch)


def test_an_end_without_a_close_frame_is_not_the_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def way(stage: Stage) -> Left:
        session, life, reading = await stage.opened()
        found = left(session, life, reading)
        abort(session)
        return found

    row = in_place_of_released(way, monkeypatch)

    assert row.closed_in_s is not None
    assert row.how != "close frame"
    assert not row.ok


def test_a_service_that_somebody_keeps_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def way(stage: Stage) -> Left:
        session, life, reading = await stage.opened()
        found = left(session, life, reading)
        found.kept.append(session._service)
        return found

    row = in_place_of_released(way, monkeypatch)

    assert (row.ok, row.service_kept) == (False, True)


def test_a_session_that_calls_itself_closed_while_it_stands_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveSession, "is_closed", True)

    (row,) = measured(LAB, ways.RELEASED)

    assert (row.ok, row.is_closed) == (False, [True])


def test_a_reader_that_is_never_woken_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its stream says of itself that it is finished."""

    def finish(stream: Stream[object]) -> None:
        stream._finished = True

    monkeypatch.setattr(Stream, "finish", finish)

    (row,) = measured(LAB, ways.RELEASED)

    assert (row.ok, row.stream_finished, row.stream_ended_in_s) == (False, False, None)


def test_a_client_that_says_goodbye_and_keeps_its_socket_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def way(stage: Stage) -> Left:
        session, life, reading = await stage.opened()
        found = left(session, life, reading)
        connection = session._service._socket._wire._connection  # type: ignore[union-attr]
        connection.transport.pause_reading()
        connection.protocol.send_close(1000, "")
        connection.send_data()
        found.kept.append(session)
        return found

    row = in_place_of_released(way, monkeypatch)

    assert (row.how, row.ok) == ("close frame", False)
    assert (row.socket, row.socket_over_in_s) == ("close_wait", None)


def test_a_reader_that_is_told_an_error_at_a_close_has_no_stream_that_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it has not come to its end either."""
    close = Service.close

    async def failing(service: Service) -> None:
        service.responses.fail(lambda: ClosedHere("closed here"))
        await close(service)

    monkeypatch.setattr(Service, "close", failing)
    (row,) = measured(LAB, ways.CLOSED)

    assert (row.stream_finished, row.stream_failed, row.ok) == (False, True, False)


def seen(path: str = ways.RELEASED) -> Trial:
    """Everything as it is to be, half a second after the release."""
    stage = SimpleNamespace(variant=LAB, server=SimpleNamespace(endpoint=HURRIED))
    life = Life(1, 0.0, ended_at=10.5, ended_s=10.5, how="close frame")
    reading = Reading(Stream())
    reading.ended_at = 10.5
    found = Left(life, 10.0, reading, said=ways.SAID[path])
    return Trial(cast("Stage", stage), path, found, kept=False, socket="none", socket_over_at=10.5)


def test_what_every_witness_saw_in_time_is_right() -> None:
    assert leaks._row(seen()).ok


@pytest.mark.parametrize(
    "spoil",
    [
        lambda trial: setattr(trial.left.life, "ended_at", 15.0),
        lambda trial: setattr(trial.left.life, "ended_at", None),
        lambda trial: setattr(trial.left.life, "how", "RST"),
        lambda trial: setattr(trial.left.life, "how", "FIN"),
        lambda trial: setattr(trial, "socket_over_at", 15.0),
        lambda trial: setattr(trial, "socket_over_at", None),
        lambda trial: setattr(trial.left.reading, "ended_at", 15.0),
        lambda trial: setattr(trial.left.reading, "ended_at", None),
        lambda trial: setattr(trial.left.reading, "failed", True),
        lambda trial: setattr(trial, "kept", True),
        lambda trial: setattr(trial.left, "said", [True]),
    ],
)
def test_what_one_witness_saw_late_or_otherwise_is_wrong(spoil: Callable[[Trial], None]) -> None:
    trial = seen()
    spoil(trial)

    assert not leaks._row(trial).ok


@pytest.mark.parametrize(
    "spoil",
    [
        lambda trial: setattr(trial.left.life, "ended_at", 9.9),
        lambda trial: setattr(trial.left.reading, "ended_at", 9.9),
        lambda trial: setattr(trial, "socket_over_at", 9.9),
    ],
)
def test_what_one_witness_saw_before_the_release_is_an_invalid_run(spoil: Callable[[Trial], None]) -> None:
    trial = seen()
    spoil(trial)

    with pytest.raises(InvalidRun):
        leaks._row(trial)
