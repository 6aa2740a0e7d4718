"""All tables of a client session's life, measured side by side."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from lab.live.lifecycle import LAB, REPAIRED
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import closes, leaks, limit, predictions, race, rules
from lab.study.lifecycle.closes import CloseRow
from lab.study.lifecycle.leaks import LeakRow, Repeated
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import RaceRow
from lab.study.lifecycle.rules import RulesRow

Row = TypeVar("Row")

REPEATS = 100


@dataclass(frozen=True, slots=True)
class Tables:
    """What came of it."""

    leaks: list[LeakRow]
    repeated: list[Repeated]
    limit: list[LimitRow]
    race: list[RaceRow]
    closes: list[CloseRow]
    rules: list[RulesRow]
    repeats: int = REPEATS
    """Sessions that were asked for in each row of ``repeated``."""

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Each table under its name, rows as the contract has them, each with what its prediction says of it."""
        return {
            "leaks": _judged(leaks.as_json(self.leaks), self.leaks, predictions.leaks_as_predicted),
            "repeated": _judged(
                leaks.as_json(self.repeated),
                self.repeated,
                lambda row: predictions.repeated_as_predicted(row, self.repeats),
            ),
            "limit": _judged(limit.as_json(self.limit), self.limit, predictions.limit_as_predicted),
            "race": _judged(race.as_json(self.race), self.race, predictions.race_as_predicted),
            "closes": _judged(closes.as_json(self.closes), self.closes, predictions.closes_as_predicted),
            "rules": _judged(rules.as_json(self.rules), self.rules, predictions.rules_as_predicted),
        }

    @property
    def failures(self) -> list[str]:
        """Where the prediction failed: a row that does not show what it should, or one that is missing."""
        return [
            *predictions.leaks_wrong(self.leaks),
            *predictions.repeated_wrong(self.repeated, self.repeats),
            *predictions.limit_wrong(self.limit),
            *predictions.race_wrong(self.race),
            *predictions.closes_wrong(self.closes),
            *predictions.rules_wrong(self.rules),
        ]


def _judged(
    written: Iterable[dict[str, Any]], rows: Iterable[Row], as_predicted: Callable[[Row], bool]
) -> list[dict[str, Any]]:
    return [{**one, "as_predicted": as_predicted(row)} for one, row in zip(written, rows, strict=True)]


async def measure(*, repeats: int = REPEATS, races: int = race.RUNS) -> Tables:
    """Run everything; nearly all of its time is waiting.

    Args:
        repeats: Sessions released for each of the two variants that close, at each server.
        races: Races at random, for each variant.

    Raises:
        InvalidRun: a server did not tell of a session, or a session was over before it was left.
    """
    # The races never wait: they would hold up whatever else is measured.
    raced = await asyncio.to_thread(race.rows, runs=races)
    leaked, limited, closed, ruled = await asyncio.gather(leaks.rows(), limit.rows(), closes.rows(), rules.rows())
    many = [
        await leaks.repeated(variant, endpoint, repeats)
        for variant in (REPAIRED, LAB)
        for endpoint in ENDPOINTS.values()
    ]
    return Tables(leaked, many, limited, raced, closed, ruled, repeats)
