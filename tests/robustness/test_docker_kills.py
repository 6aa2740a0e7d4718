"""SIGKILL of an owner of containers at any moment: its reaper removes all of it, and nobody else's."""

import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from lab.testbed.docker import labels, reaper
from lab.testbed.docker.engine import Engine
from tests.engines import require_engine, require_lab_image
from tests.testbed.docker.host import host_state
from tests.testbed.docker.owners import owner, wait_until_nothing_is_left
from tests.testbed.docker.sets import container_set, things_of

AT_ONCE = 2
LONGEST_DELAY_S = 4.0
"""Half as long again as it takes to bring a set up and down."""


@dataclass(slots=True)
class Tally:
    """What came of the kills."""

    took_s: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{len(self.took_s)} kills, {sorted(self.states)}: nothing left after "
            f"{statistics.median(self.took_s):.1f} s (median), {max(self.took_s):.1f} s (worst)"
        )


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def lab_image(engine: Engine) -> str:
    return require_lab_image(engine)


def kill_some(engine: Engine, image: str, source: random.Random) -> Tally:
    """Kill a few owners that run side by side, each at its own moment after it began."""
    tally = Tally()
    with ExitStack() as ending:
        victims = [ending.enter_context(owner("-m", "tests.testbed.docker.sets", image)) for _ in range(AT_ONCE)]
        assert [victim.hear() for victim in victims] == ["begun"] * AT_ONCE
        began = time.monotonic()
        delays = sorted(source.uniform(0, LONGEST_DELAY_S) for _ in victims)
        for victim, delay in zip(victims, delays, strict=True):
            time.sleep(max(0.0, began + delay - time.monotonic()))
            assert victim.process.poll() is None
            tally.states.append(f"{len(things_of(engine, victim.owner))} things")
            victim.kill()
            tally.took_s.append(wait_until_nothing_is_left(engine, victim.owner))
        for victim in victims:
            assert not things_of(engine, victim.owner)
    return tally


@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_within_fifteen_seconds_nothing_of_a_killed_owner_is_left_and_all_of_a_living_ones(
    engine: Engine, lab_image: str, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source, tally = random.Random(kills), Tally()
    # Other programs use the engine too; what only they change says nothing about the lab.
    before = host_state()
    with reaper.watch(engine, lab_image), container_set(engine, lab_image):
        own = things_of(engine, labels.own())
        assert len(own) >= 8
        while len(tally.took_s) < kills:
            some = kill_some(engine, lab_image, source)
            tally.took_s += some.took_s
            tally.states += some.states

        assert {thing.id for thing in own} <= {thing.id for thing in things_of(engine, labels.own())}
        running = engine.client.api.containers(filters={"label": labels.of_owner(labels.own())})
        assert len(running) >= 5
    with capsys.disabled():
        sys.stdout.write(f"\n{tally}\n")
    assert host_state() == before
