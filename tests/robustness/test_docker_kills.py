"""SIGKILL of an owner of containers at any moment: its reaper removes all of it, and nobody else's.

Half of the victims bring sets of containers up and down as fast as they can, without a pause between requests to the
engine; the other half are runs, most of their time with a cut in force. A rule lives in its container's namespace and
ends with that.
"""

import functools
import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import reaper
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import Owner
from tests.engines import require_engine, require_lab_image
from tests.testbed.docker.host import changes, host_state
from tests.testbed.docker.owners import LONGEST_S, owner, until, wait_until_nothing_is_left
from tests.testbed.docker.sets import container_set, things_of

LONGEST_DELAY_S = 8.0
"""About as long as a run in containers takes on two busy cores, from the start of its program to its end."""


@dataclass(slots=True)
class Tally:
    """What came of the kills."""

    removed_s: list[float] = field(default_factory=list)
    """From a kill to the end of the last thing; where there was one."""

    gone_s: list[float] = field(default_factory=list)
    """From a kill to the end of the reaper, which stays for a settle time."""

    things: list[int] = field(default_factory=list)
    """How many things there were at each kill."""

    def __str__(self) -> str:
        removed = self.removed_s or [0.0]
        return (
            f"{len(self.gone_s)} kills with {min(self.things)} to {max(self.things)} things: "
            f"all removed after {statistics.median(removed):.1f} s (median), {max(removed):.1f} s (worst); "
            f"the reaper gone after {statistics.median(self.gone_s):.1f} s (median), {max(self.gone_s):.1f} s (worst)"
        )


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def lab_image(engine: Engine) -> str:
    return require_lab_image(engine)


def only_the_reaper_is_left(engine: Engine, owner: Owner) -> bool:
    return all(thing.labels[labels.ROLE] == labels.REAPER for thing in things_of(engine, owner))


def kill_two(engine: Engine, image: str, folder: Path, source: random.Random, tally: Tally) -> None:
    """Kill two owners that run side by side, each at its own moment."""
    with ExitStack() as ending:
        commands = (["-m", "tests.testbed.docker.sets", image], ["-m", "tests.robustness.container_runs", str(folder)])
        victims = [ending.enter_context(owner(*command)) for command in commands]
        assert [victim.hear() for victim in victims] == ["begun", "begun"]
        began = time.monotonic()
        source.shuffle(victims)
        delays = sorted(source.uniform(0, LONGEST_DELAY_S) for _ in victims)
        for victim, delay in zip(victims, delays, strict=True):
            time.sleep(max(0.0, began + delay - time.monotonic()))
            assert victim.process.poll() is None
            tally.things.append(len(things_of(engine, victim.owner)))
            victim.kill()
            removed_s = until(functools.partial(only_the_reaper_is_left, engine, victim.owner))
            tally.removed_s += [removed_s] if tally.things[-1] else []
            tally.gone_s.append(removed_s + wait_until_nothing_is_left(engine, victim.owner))
        # What came to life again after it was gone would show now.
        assert not [thing for victim in victims for thing in things_of(engine, victim.owner)]


@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_within_fifteen_seconds_nothing_of_a_killed_owner_is_left_and_all_of_a_living_ones(
    engine: Engine, lab_image: str, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, tally = random.Random(kills), Tally()
    before = host_state()
    with reaper.watch(engine, lab_image), container_set(engine, lab_image):
        own = things_of(engine, labels.own())
        assert len(own) >= 8
        while len(tally.gone_s) < kills:
            kill_two(engine, lab_image, tmp_path, source, tally)

        assert {thing.id for thing in own} <= {thing.id for thing in things_of(engine, labels.own())}
        running = engine.client.api.containers(filters={"label": labels.of_owner(labels.own())})
        assert len(running) >= 5
    with capsys.disabled():
        sys.stdout.write(f"\n{tally}\n")
    assert max(tally.gone_s) < LONGEST_S
    assert changes(before, host_state()) == {}
