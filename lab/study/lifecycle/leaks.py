"""The leak table: variants, servers, and the paths by which a session is left.

Prediction: as published a session that is released stays connected until the server's own limit, and its service, its
tasks and its socket with it; closing it or ending the process helps. With the repair every path is over within 5 s.

Three witnesses, none of them a log: the server's count of connections, the client's socket as its kernel has it, and
weak references.
"""

import asyncio
import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.core.flow import Endpoint as Address
from lab.core.socket import TcpState
from lab.live.lifecycle import VARIANTS, Variant
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.study.lifecycle import servers, ways
from lab.study.lifecycle.census import LOOK_S, Census, census
from lab.study.lifecycle.servers import HOST
from lab.study.lifecycle.ways import Left, Stage
from lab.testbed.sockets import query

WITHIN_S = 5.0
"""The contract: from the release to the end of the connection and of the stream."""

LAPSE = 100.0
"""How many times faster the servers' time runs while their own limit is awaited: an end is seen some seconds late."""

OVER = frozenset({TcpState.TIME_WAIT, TcpState.CLOSE, TcpState.LAST_ACK})
"""States of a socket that both ends are done with."""

PATHS = (*ways.WAYS, ways.EXIT)


@dataclass(frozen=True, slots=True)
class LeakRow:
    """One session that was left."""

    variant: str
    profile: str
    path: str
    closed_in_s: float | None
    """From being left to the server's count without it; None where it was still counted at the end of the watch."""

    server_limit_s: int | None
    """Session seconds from being left to the server's own close of what leaked; None where nothing did, or where
    that was not awaited."""

    stream_finished: bool | None
    """None where the stream was gone with its process."""

    is_closed: bool | None
    """What the session says; None where nobody held it."""

    service_kept: bool | None
    """Something still held its service at the end of the watch. An event loop that stands still holds its tasks."""

    socket: str
    """The client's TCP state at the end of the watch, ``none`` where the kernel has forgotten it."""

    ok: bool


@dataclass(slots=True)
class _Trial:
    stage: Stage
    path: str
    left: Left
    finished: bool | None = None
    kept: bool | None = None
    socket: str = ""
    closed_in_s: float | None = None
    limit_s: float | None = None


async def rows(
    variants: Iterable[Variant] = VARIANTS.values(),
    endpoints: Iterable[Endpoint] = ENDPOINTS.values(),
    paths: Sequence[str] = PATHS,
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
        InvalidRun: a session was never counted by its server.
    """
    with servers.running(endpoints, concurrent_limit="none") as up:
        async with census(up) as counts:
            stages = [Stage(server, variant, counts) for variant in variants for server in up]
            trials: list[_Trial] = []
            try:
                await _leave_all(stages, paths, trials)
                await _watch(trials, counts, watch_s)
                if to_the_limit:
                    await _await_limit(trials, counts)
            finally:
                await _tidy(trials)
    order = {(stage.variant.name, stage.server.port): number for number, stage in enumerate(stages)}
    places = {path: number for number, path in enumerate(PATHS)}
    trials.sort(key=lambda trial: (order[trial.stage.variant.name, trial.stage.server.port], places[trial.path]))
    return [_row(trial) for trial in trials]


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
    """How many of them the server saw end within 5 s, with their streams finished and their services gone."""

    slowest_s: float | None
    ok: bool


async def repeated(variant: Variant, endpoint: Endpoint, runs: int = 100) -> Repeated:
    """Release so many sessions, all at about the same time.

    Args:
        variant: Whose.
        endpoint: Whose server.
        runs: How many.
    """
    with servers.running([endpoint], concurrent_limit="none") as up:
        async with census(up) as counts:
            stage = Stage(up[0], variant, counts)
            lefts = await asyncio.gather(*(ways.released(stage) for _ in range(runs)))
            trials = [_Trial(stage, ways.RELEASED, left) for left in lefts]
            try:
                await _watch(trials, counts, WITHIN_S)
            finally:
                await _tidy(trials)
    took = [row.closed_in_s for row in map(_row, trials) if row.ok and row.closed_in_s is not None]
    return Repeated(variant.name, endpoint.name, runs, len(took), max(took, default=None), len(took) == runs)


async def _leave_all(stages: Sequence[Stage], paths: Sequence[str], trials: list[_Trial]) -> None:
    """Leave by every path at once; what was left is in ``trials`` even where another path failed."""

    async def one(stage: Stage, path: str) -> None:
        trials.append(_Trial(stage, path, await ways.WAYS[path](stage)))

    async def out(variant: Variant) -> None:
        of_it = [stage for stage in stages if stage.variant is variant]
        trials.extend(
            _Trial(stage, ways.EXIT, left) for stage, left in zip(of_it, await ways.exits(of_it), strict=True)
        )

    inside = [one(stage, path) for stage in stages for path in paths if path != ways.EXIT]
    variants = dict.fromkeys(stage.variant for stage in stages)
    outside = [out(variant) for variant in variants] if ways.EXIT in paths else []
    for failed in await asyncio.gather(*inside, *outside, return_exceptions=True):
        if failed is not None:
            raise failed


async def _watch(trials: Sequence[_Trial], counts: Census, watch_s: float) -> None:
    """Wait until all are gone, or the last of them was watched for long enough; then ask the witnesses."""
    until = max(trial.left.at for trial in trials) + watch_s
    while not all(_over(trial, counts) for trial in trials) and time.monotonic() < until:
        await asyncio.sleep(LOOK_S)
    gc.collect()
    for trial in trials:
        left, server = trial.left, trial.stage.server
        count = counts.gone(server, left.port)
        trial.closed_in_s = None if count is None else max(0.0, count.at - left.at)
        trial.finished = None if left.responses is None else left.responses.finished
        trial.kept = None if left.service is None else left.service() is not None
        sample = query(Address(HOST, left.port), Address(HOST, server.port))
        trial.socket = "none" if sample is None else sample.state.name


def _over(trial: _Trial, counts: Census) -> bool:
    """Whether the server counts it no longer, and the client's side has had the same time for its own end."""
    if counts.gone(trial.stage.server, trial.left.port) is None:
        return False
    return trial.left.service is None or trial.left.service() is None or trial.path in _HELD


async def _await_limit(trials: Sequence[_Trial], counts: Census) -> None:
    """Let the servers' time run until they end what leaked.

    A loop that stands still never answers the server's close, and is left out.
    """
    leaked = [trial for trial in trials if trial.closed_in_s is None and trial.path != ways.STANDING]
    for server in {trial.stage.server.port: trial.stage.server for trial in leaked}.values():
        await asyncio.to_thread(server.lapse, LAPSE)
    longest_s = max((trial.stage.server.endpoint.server.silence_close_s for trial in leaked), default=0.0)
    until = time.monotonic() + 2 * longest_s / LAPSE
    while time.monotonic() < until and any(
        counts.gone(trial.stage.server, trial.left.port) is None for trial in leaked
    ):
        await asyncio.sleep(LOOK_S)
    for trial in leaked:
        if (count := counts.gone(trial.stage.server, trial.left.port)) is not None:
            trial.limit_s = count.session_s - counts.session_s(trial.stage.server, trial.left.at)


async def _tidy(trials: Sequence[_Trial]) -> None:
    """End what leaked, and let go of the rest."""
    for trial in trials:
        left = trial.left
        if left.tidy is not None:
            await left.tidy()
        elif left.service is not None and (service := left.service()) is not None:
            await service.close()
        left.kept.clear()


_HELD = frozenset({ways.CLOSED, ways.STANDING})
"""Paths after which something rightly holds the service: the application, or a loop that stands still."""


def _row(trial: _Trial) -> LeakRow:
    held = trial.left.is_closed is not None
    witnesses = (
        trial.closed_in_s is not None and trial.closed_in_s < WITHIN_S,
        trial.socket == "none" or TcpState[trial.socket] in OVER,
        not trial.kept or trial.path in _HELD,
        # After close the stream stays open for as long as somebody holds the session.
        trial.finished is None or trial.finished is not held,
        trial.left.is_closed is not False,
    )
    return LeakRow(
        trial.stage.variant.name,
        trial.stage.server.endpoint.name,
        trial.path,
        None if trial.closed_in_s is None else round(trial.closed_in_s, 3),
        None if trial.limit_s is None else round(trial.limit_s),
        trial.finished,
        trial.left.is_closed,
        trial.kept,
        trial.socket.lower(),
        all(witnesses),
    )
