"""What hosts show without packet loss: each case run on real transports over loopback, repaired and defective."""

import asyncio
from collections.abc import Sequence

from lab.host.tables.closing import closing
from lab.host.tables.finalizing import finalizing
from lab.host.tables.lost_verdicts import undeliverable
from lab.host.tables.rows import Row
from lab.host.tables.stage import CARRIERS, Carrier
from lab.host.tables.without_session import without_session

__all__ = ["Row", "host_rows"]


async def all_rows(carriers: Sequence[Carrier] = CARRIERS) -> list[Row]:
    """The rows of all three questions, for each carrier."""
    tables = [table(carrier) for table in (closing, without_session, finalizing, undeliverable) for carrier in carriers]
    return [row for rows in await asyncio.gather(*tables) for row in rows]


def host_rows() -> list[Row]:
    """The same, for who has no event loop (some seconds, mostly waiting)."""
    return asyncio.run(all_rows())
