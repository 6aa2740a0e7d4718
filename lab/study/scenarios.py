"""All scenarios by name: the study's 43 sessions, and what the study left open."""

from collections.abc import Iterable

from lab.core.errors import UsageError
from lab.core.profiles import nearest
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
        UsageError: there is none; the message names the nearest.
    """
    by_lower = {known.lower(): scenario for known, scenario in SCENARIOS.items()}
    if name.lower() not in by_lower:
        raise UsageError(f"There is no scenario {name!r}.", fix=nearest(name, SCENARIOS))
    return by_lower[name.lower()]


def sessions(scenarios: Iterable[Scenario]) -> int:
    """How many sessions they are by default."""
    return sum(scenario.n for scenario in scenarios)
