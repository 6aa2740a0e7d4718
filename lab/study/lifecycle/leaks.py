"""The leak table: variants, servers, and the paths by which a session is left.

Prediction: as published a session that is released stays connected until the server's own limit, and its service, its
tasks and its socket with it; closing it or ending the process helps. With the repair every path is over within 5 s.

Three witnesses, none of them a log: the server's count of connections, the client's socket as its kernel has it, and
who is still there: weak references, and a reader of the stream.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.live.lifecycle import VARIANTS, Variant
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.session.states import Detach
from lab.study.lifecycle import elsewhere, servers, ways
from lab.study.lifecycle.stage import Stage
from lab.study.lifecycle.witnesses import LOOK_S, Trial, Watch

WITHIN_S = 5.0
"""The contract: from the release to the end of the connection and of the stream."""

WAVE = 100
"""Sessions released at about the same time: of many more, a server that lets 512 handshakes be under way
(``lab.live.server.door``) drops some, and a process has no files left."""

LAPSE = 100.0
"""How many times faster the servers' time runs while their own limit is awaited: what they do 10 ms late is a second
late."""


@dataclass(frozen=True, slots=True)
class LeakRow:
    """One session that was left. Times are seconds from just before that."""

    variant: str
    profile: str
    path: str
    closed_in_s: float | None
    """To the server's own event, stamped as it happens; None where it was still connected at the end of the watch."""

    how: str
    """What the server saw of the end: a close frame, FIN, RST."""

    server_limit_s: int | None
    """Session seconds to the server's own close of what leaked; None where nothing did, or where that was not
    awaited."""

    stream_finished: bool | None
    """A reader came to its normal end; None where the stream was gone with its process."""

    stream_failed: bool | None
    """The reader was told an error, which is no end of a session that is left, nor of one that is closed."""

    stream_ended_in_s: float | None
    is_closed: list[bool]
    """What the session said after each step, connected, closed, resumed; the last of them just before it was left."""

    service_kept: bool | None
    """Something still held its service at the end of the watch. An event loop that stands still holds its tasks."""

    service_gone_in_s: float | None
    socket: str
    """The client's TCP state when the kernel was last asked, ``none`` where it has forgotten it."""

    socket_over_in_s: float | None
    """To the first look at the kernel, of one each 20 ms, that found it over."""

    ok: bool
    """Every witness saw within 5 s what it is to see, and the server a close frame where the client sends one."""


async def rows(
    variants: Iterable[Variant] = VARIANTS.values(),
    endpoints: Iterable[Endpoint] = ENDPOINTS.values(),
    paths: Sequence[str] = ways.PATHS,
    *,
    watch_s: float = WITHIN_S,
    to_the_limit: bool = True,
) -> list[LeakRow]:
    """The table; all sessions at once, watched for ``watch_s``, and another 5 s where the servers' limit is awaited.

    The servers' limits on sessions at once are off here, since sessions of all rows share a server; ``limit`` has them.

    Args:
        variants: Whose sessions.
        endpoints: Whose servers.
        paths: How they are left.
        watch_s: How long each is watched, seconds.
        to_the_limit: Then await the servers' own end of what leaked, in a lapse of their time.

    Raises:
        InvalidRun: a server did not tell of a session, or a session was over before it was left.
    """
    async with servers.running(endpoints, concurrent_limit="none") as up:
        stages = [Stage(server, variant) for variant in variants for server in up]
        async with _watch() as watch:
            await _leave_all(stages, paths, watch)
            await watch.until_over(watch_s)
            if to_the_limit:
                await _await_limit(watch.trials)
            order = {id(stage): number for number, stage in enumerate(stages)}
            places = {path: number for number, path in enumerate(ways.PATHS)}
            watch.trials.sort(key=lambda trial: (order[id(trial.stage)], places[trial.path]))
            return [_row(trial) for trial in watch.trials]


def as_json(found: Iterable["LeakRow | Repeated"]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


@dataclass(frozen=True, slots=True)
class Repeated:
    """Many sessions released with their streams kept."""

    variant: str
    profile: str
    runs: int
    closed: int
    """How many of them every witness saw end within 5 s."""

    slowest_s: float | None
    """To the server's event."""

    ok: bool


async def repeated(variant: Variant, endpoint: Endpoint, runs: int = 100) -> Repeated:
    """Release so many sessions, a wave of them at about the same time, and then the next.

    Args:
        variant: Whose.
        endpoint: Whose server.
        runs: How many.

    Raises:
        InvalidRun: as ``rows``.
    """
    async with servers.running([endpoint], concurrent_limit="none") as up:
        stage = Stage(up[0], variant)
        found: list[LeakRow] = []
        while len(found) < runs:
            async with _watch() as watch:
                await _all([_leave(stage, ways.RELEASED, watch) for _ in range(min(WAVE, runs - len(found)))])
                await watch.until_over(WITHIN_S)
                found += [_row(trial) for trial in watch.trials]
    took = [row.closed_in_s for row in found if row.ok and row.closed_in_s is not None]
    return Repeated(variant.name, endpoint.name, runs, len(took), max(took, default=None), len(took) == runs)


@contextlib.asynccontextmanager
async def _watch() -> AsyncIterator[Watch]:
    async with Watch() as watch:
        try:
            yield watch
        finally:
            await _tidy(watch.trials)


async def _leave_all(stages: Sequence[Stage], paths: Sequence[str], watch: Watch) -> None:
    """Leave by every path at once; what was left is watched even where another path failed."""

    async def out(variant: Variant) -> None:
        of_it = [stage for stage in stages if stage.variant is variant]
        for stage, left in zip(of_it, await elsewhere.exits(of_it), strict=True):
            watch.add(Trial(stage, ways.EXIT, left))

    inside = [_leave(stage, path, watch) for stage in stages for path in paths if path != ways.EXIT]
    variants = dict.fromkeys(stage.variant for stage in stages)
    await _all([*inside, *(out(variant) for variant in variants if ways.EXIT in paths)])


async def _leave(stage: Stage, path: str, watch: Watch) -> None:
    watch.add(Trial(stage, path, await ways.WAYS[path](stage)))


async def _all(leaving: Iterable[Coroutine[Any, Any, None]]) -> None:
    for failed in await asyncio.gather(*leaving, return_exceptions=True):
        if failed is not None:
            raise failed


async def _await_limit(trials: Sequence[Trial]) -> None:
    """Let the servers' time run until they end what leaked.

    A loop that stands still never answers the server's close, and is left out.
    """
    leaked = [trial for trial in trials if trial.left.life.ended_at is None and trial.path not in ways.SILENT]
    for server in {trial.stage.server.port: trial.stage.server for trial in leaked}.values():
        await asyncio.to_thread(server.lapse, LAPSE)
    longest_s = max((trial.stage.server.endpoint.server.silence_close_s for trial in leaked), default=0.0)
    until = time.monotonic() + 2 * longest_s / LAPSE
    while time.monotonic() < until and any(trial.left.life.ended_s is None for trial in leaked):
        await asyncio.sleep(LOOK_S)
    for trial in leaked:
        if trial.left.life.ended_s is not None:
            # Session time was CLOCK_MONOTONIC up to the lapse, and so when it was left.
            trial.limit_s = trial.left.life.ended_s - trial.left.at


async def _tidy(trials: Sequence[Trial]) -> None:
    """End what leaked, and let go of the rest."""
    for trial in trials:
        left = trial.left
        if left.tidy is not None:
            await left.tidy()
        elif left.service is not None and (service := left.service()) is not None:
            await service.close()
        left.kept.clear()


def _row(trial: Trial) -> LeakRow:
    left, life = trial.left, trial.left.life
    by_itself = trial.limit_s is None
    closed_in_s = trial.after(life.ended_at) if by_itself else None
    stream_ended_in_s = trial.after(trial.read_to_end_at)
    socket_over_in_s = trial.after(trial.socket_over_at)
    stays_open = trial.path in ways.OPEN_STREAM
    witnesses = (
        _in_time(closed_in_s),
        _says_goodbye(trial),
        _in_time(socket_over_in_s),
        not trial.failed,
        trial.finished is None or (trial.finished is False if stays_open else _in_time(stream_ended_in_s)),
        not trial.kept or trial.path in ways.HELD,
        left.said == ways.SAID[trial.path],
    )
    return LeakRow(
        trial.stage.variant.name,
        trial.stage.server.endpoint.name,
        trial.path,
        _rounded(closed_in_s),
        life.how if by_itself else "",
        None if trial.limit_s is None else round(trial.limit_s),
        trial.finished,
        trial.failed,
        _rounded(stream_ended_in_s),
        left.said,
        trial.kept,
        _rounded(trial.after(left.gone_at)) if by_itself else None,
        trial.socket,
        _rounded(socket_over_in_s),
        all(witnesses),
    )


def _says_goodbye(trial: Trial) -> bool:
    """Whether the server saw the end that its client is to make: an abort is none."""
    if trial.path == ways.EXIT and not trial.stage.variant.closes_on_release:
        return True  # its kernel ends it
    how = trial.left.life.how
    return how == Detach.CLOSE_FRAME.value or (how == Detach.FIN.value and trial.path in ways.FIN_ALONE)


def _in_time(took_s: float | None) -> bool:
    return took_s is not None and took_s < WITHIN_S


def _rounded(took_s: float | None) -> float | None:
    return None if took_s is None else round(took_s, 3)
