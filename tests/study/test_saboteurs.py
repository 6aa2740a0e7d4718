"""The lab's own programs and its router, each with one thing wrong: no such session may come out as modelled."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.core.fault import Cut, Fault
from lab.study.commands import Modules
from lab.study.judgement import Row, judge_row
from lab.study.performing import judged
from lab.study.running import perform
from lab.study.scenario import Scenario
from lab.study.scenarios import find
from lab.testbed.ports import Testbed
from tests.sabotage import Sabotage, SideBySide, cut_nothing, heal_by_itself, nothing, opener, spoil

PATIENCE_S = 8.0
"""Of every step that waits; what does not come in this time was sabotaged."""

HEALED_S = 1.0
"""Before the assistant could notice the loss."""


def cut_another_port(testbed: Testbed) -> None:
    router = testbed.router

    def instead(act: Callable[[Fault], object]) -> Callable[[Fault], object]:
        def done(fault: Fault) -> object:
            flow = fault.flow
            return act(replace(fault, flow=flow._replace(client=flow.client._replace(port=1))))

        return done

    acts = {name: instead(getattr(router, name)) for name in ("prepare", "cut", "heal", "matched")}
    spoil(router, **acts)


def cut_one_way(testbed: Testbed) -> None:
    cut = testbed.router.cut
    spoil(testbed.router, cut=lambda fault: cut(replace(fault, direction=Cut.RETURN)))


def heal_too_early(testbed: Testbed) -> None:
    heal_by_itself(testbed, after_s=HEALED_S)


def server(name: str) -> Modules:
    return Modules(server=f"tests.study.saboteurs.{name}")


def client(name: str) -> Modules:
    return Modules(client=f"tests.study.saboteurs.{name}")


CASES: dict[str, tuple[str, int, Modules, Sabotage, str]] = {
    "accepts while locked": ("R0", 0, server("accepting_server"), nothing, "refused with 1011: 0 instead of 1"),
    "accepts in the dark": ("BR1", 0, server("accepting_server"), nothing, "refused with 1011: 0 instead of 4"),
    "takes nobody back": ("P3", 0, server("refusing_server"), nothing, "refused with 1011: 1 instead of 0"),
    "books twice": ("R1", 1, server("twice_server"), nothing, "made 2 bookings"),
    "closes at once": ("R0", 0, server("closing_server"), nothing, "got stuck at step 2"),
    "sends no result": ("R1", 1, client("withholding_client"), nothing, "got stuck at step 8"),
    "never asks": ("R1", 1, client("boasting_client"), nothing, "the server was never asked"),
    "never asks in the dark": ("BR1", 0, client("boasting_client"), nothing, "the server was never asked"),
    "miscounts": ("P3", 0, client("miscounting_client"), nothing, "counted 1 bookings, and its file holds 2"),
    "cuts nothing": ("BR1", 0, Modules(), cut_nothing, "the rule dropped 0 packets"),
    "cuts another port": ("BR1", 0, Modules(), cut_another_port, "the rule dropped 0 packets"),
    "cuts one way": ("BR1", 0, Modules(), cut_one_way, "came through the hole"),
    "heals too early": ("BR1", 0, Modules(), heal_too_early, "came through the hole"),
}


def impatient(scenario: Scenario) -> Scenario:
    """The same, with steps that wait less long."""
    hasty = tuple(
        replace(
            each, steps=tuple({**step, "timeout": PATIENCE_S} if "timeout" in step else step for step in each.steps)
        )
        for each in scenario.lapsed
    )
    return replace(scenario, lapsed=hasty)


def performed(folder: Path) -> Callable[[str], Row]:
    """Performs the case of a name, two at a time where they need the processor."""
    gate = threading.BoundedSemaphore(2)

    def perform_one(name: str) -> Row:
        named, number, modules, sabotage, _ = CASES[name]
        scenario = impatient(find(named))
        out = folder / name.replace(" ", "-")
        done = perform(scenario, number, open_testbed=opener(sabotage), out=out, modules=modules, gate=gate)
        return judge_row(scenario, [judged(done)], real=False)

    return perform_one


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide[Row]]:
    with SideBySide(CASES, performed(tmp_path_factory.mktemp("sabotage"))) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_sabotage_is_never_as_modelled_and_the_verdict_says_what_is_wrong(stage: SideBySide[Row], name: str) -> None:
    row, said = stage[name], CASES[name][-1]

    assert not row.passed
    assert not row.in_range
    assert any(said in reason for reason in row.failures), row.failures
