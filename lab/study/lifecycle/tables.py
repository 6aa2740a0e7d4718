"""All tables of a client session's life, measured side by side."""

import asyncio
from dataclasses import dataclass
from typing import Any

from lab.live.lifecycle import LAB, REPAIRED
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import closes, leaks, limit, race
from lab.study.lifecycle.closes import CloseRow
from lab.study.lifecycle.leaks import LeakRow, Repeated
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import RaceRow

REPEATS = 100


@dataclass(frozen=True, slots=True)
class Tables:
    """What came of it."""

    leaks: list[LeakRow]
    repeated: list[Repeated]
    limit: list[LimitRow]
    race: list[RaceRow]
    closes: list[CloseRow]

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Each table under its name, rows as the contract has them."""
        return {
            "leaks": leaks.as_json(self.leaks),
            "repeated": leaks.as_json(self.repeated),
            "limit": limit.as_json(self.limit),
            "race": race.as_json(self.race),
            "closes": closes.as_json(self.closes),
        }

    @property
    def failures(self) -> list[str]:
        """Where the prediction failed: a row of the lab's that is not right, or no row at all that shows a defect."""
        tables: dict[str, list[Any]] = {"leaks": self.leaks, "limit": self.limit, "race": self.race}
        wrong = [
            f"{table}: {row}"
            for table, rows in tables.items()
            for row in rows
            if row.variant == LAB.name and not row.ok
        ]
        wrong += [f"closes: {row}" for row in self.closes if row.client == LAB.name and not row.ok]
        wrong += [f"repeated: {row}" for row in self.repeated if not row.ok]
        # A close path is mended by the published repair as well; the race and the codes are not.
        wrong += [f"leaks: {row}" for row in self.leaks if row.variant == REPAIRED.name and not row.ok]
        wrong += [f"{table}: the defect did not show" for table, rows in tables.items() if all(row.ok for row in rows)]
        return wrong


async def measure(*, repeats: int = REPEATS, races: int = race.RUNS) -> Tables:
    """Run everything; some 20 s, nearly all of it waiting.

    Args:
        repeats: Sessions released for each of the two variants that close.
        races: Races at random, for each variant.

    Raises:
        InvalidRun: a session was never counted by its server.
    """
    endpoint = ENDPOINTS["developer-newer"]
    # The races never wait: they would hold up whatever else is measured.
    raced = await asyncio.to_thread(race.rows, runs=races)
    leaked, limited, closed = await asyncio.gather(leaks.rows(), limit.rows(), closes.rows())
    repeated = [await leaks.repeated(variant, endpoint, repeats) for variant in (REPAIRED, LAB)]
    return Tables(leaked, repeated, limited, raced, closed)
