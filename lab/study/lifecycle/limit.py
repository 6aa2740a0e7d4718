"""An application that opens one session after the other and closes none, against the server's limit.

Prediction: as published each of them stays and counts, so that the first one over the limit is refused. With the repair
the one before is over when the next is asked for, and none is refused.

The sessions ask for no handle: one that can be resumed is held by its server for a while after its end, and that would
be counted with the rest.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lab.core.errors import InvalidRun
from lab.live.lifecycle import VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import SessionError
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.lifecycle.websocket import WebSocketWire
from lab.study.lifecycle import servers
from lab.study.lifecycle.servers import Server

ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One application."""

    variant: str
    profile: str
    limit: int | None
    attempts: int
    refused_at: int | None
    """The attempt that was refused, from 1; None where none was."""

    told: str
    """What it was told."""

    counted: int
    """Sessions against the limit at the end, by the server's count."""

    ok: bool
    """None was refused, or the limit is out of reach of so many."""


async def rows(
    variants: Iterable[Variant] = VARIANTS.values(),
    endpoints: Iterable[Endpoint] = ENDPOINTS.values(),
    attempts: int = ATTEMPTS,
) -> list[LimitRow]:
    """The table; applications of one variant at once, each with a server of its own.

    Args:
        variants: Whose sessions.
        endpoints: Whose servers.
        attempts: How many sessions each opens, unless it is refused.

    Raises:
        InvalidRun: what refused a session was not the limit.
    """
    wanted = list(endpoints)
    found = []
    for variant in variants:
        async with servers.running(wanted) as up:
            found += await asyncio.gather(*(_row(server, variant, attempts) for server in up))
    return found


def as_json(found: Iterable[LimitRow]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


async def _row(server: Server, variant: Variant, attempts: int) -> LimitRow:
    refused_at, told = None, ""
    leaked = []
    for attempt in range(1, attempts + 1):
        session = LiveSession(lambda: WebSocketWire(server.url), server.endpoint.setup(resumable=False), variant)
        if not variant.closes_on_release:
            leaked.append(session._service)  # noqa: SLF001 - to tidy up
        try:
            await session.connect()
        except SessionError as error:
            refused_at, told = attempt, f"{type(error).__name__}: {error.message}"
            break
    session = None  # type: ignore[assignment]  # the last one is released as the others were
    count = await asyncio.to_thread(server.count)
    for service in leaked:
        await service.close()
    if count.turned_away != (refused_at is not None):
        raise InvalidRun(
            f"{server.endpoint.name}'s limit refused {count.turned_away} sessions; who asked: {told or 'none'}"
        )
    limit = server.endpoint.server.concurrent_limit
    return LimitRow(
        variant.name, server.endpoint.name, limit, attempts, refused_at, told, count.counted, refused_at is None
    )
