"""All scenarios by name: the study's 43 sessions, and what the study left open."""

import difflib
from collections.abc import Iterable, Mapping

from lab.core.errors import UsageError
from lab.study.frozen import FROZEN
from lab.study.new_ground import NEW_GROUND
from lab.study.packet_loss import PACKET_LOSS
from lab.study.recovered import STAGE_TWO
from lab.study.round_one import ROUND_ONE
from lab.study.scenario import Scenario
from lab.study.sweep import SWEEP

PUBLISHED = (*ROUND_ONE, *FROZEN, *PACKET_LOSS, *STAGE_TWO)
"""The study's own rows, 43 sessions."""

SCENARIOS = {scenario.id: scenario for scenario in (*PUBLISHED, *NEW_GROUND, *SWEEP)}
"""Every scenario, in the order of the tables."""


def find(name: str) -> Scenario:
    """The scenario of that name, in any case.

    Raises:
        UsageError: there is none; the message names one that is near, or how to list them.
    """
    by_lower = {known.lower(): scenario for known, scenario in SCENARIOS.items()}
    if name.lower() not in by_lower:
        raise UsageError(f"There is no scenario {name!r}.", fix=_near(name, by_lower))
    return by_lower[name.lower()]


def _near(name: str, by_lower: Mapping[str, Scenario]) -> str:
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]].id}?" if near else "`lab live run` without a name lists them."


def sessions(scenarios: Iterable[Scenario]) -> int:
    """How many sessions they are by default."""
    return sum(scenario.n for scenario in scenarios)
