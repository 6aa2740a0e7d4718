"""What hosts show without packet loss: each case run on real transports over loopback, repaired and defective."""

import asyncio
from collections.abc import Sequence

from lab.core.errors import InvalidRun
from lab.host.tables.closing import closing
from lab.host.tables.finalizing import finalizing
from lab.host.tables.lost_verdicts import undeliverable
from lab.host.tables.rows import Row
from lab.host.tables.stage import CARRIERS, Carrier
from lab.host.tables.without_session import without_session
from lab.programs.lateness import Lateness

__all__ = ["Row", "host_rows"]

LATE_S = 0.1
"""How late the event loop may be for a row that is not as predicted to count: what waits for nobody is some ten of its
turns, and is told from a time-out by half of that, 1 s. In one millisecond of a machine that has time."""


async def all_rows(carriers: Sequence[Carrier] = CARRIERS) -> list[Row]:
    """The rows of all three questions, for each carrier."""
    tables = [table(carrier) for table in (closing, without_session, finalizing, undeliverable) for carrier in carriers]
    return [row for rows in await asyncio.gather(*tables) for row in rows]


def host_rows(carriers: Sequence[Carrier] = CARRIERS) -> list[Row]:
    """The same, for who has no event loop (some seconds, mostly waiting).

    Raises:
        InvalidRun: a row is not as predicted, and the machine was too busy to believe that.
    """
    rows, late_s = asyncio.run(_watched(carriers))
    wrong = [row for row in rows if not row.as_predicted]
    if wrong and late_s > LATE_S:
        raise InvalidRun(
            f"{len(wrong)} of {len(rows)} rows of the hosts are not as predicted, the first one {wrong[0]}, "
            f"and the event loop ran up to {late_s:.2f} s late meanwhile (at most {LATE_S:g}).",
            fix="run it again while the machine does nothing else",
        )
    return rows


async def _watched(carriers: Sequence[Carrier]) -> tuple[list[Row], float]:
    """The rows, and how late the event loop was at worst."""
    lateness = Lateness()
    lateness.start()
    try:
        rows = await all_rows(carriers)
    finally:
        lateness.stop()
    return rows, lateness.figures()["max_s"] or 0.0
