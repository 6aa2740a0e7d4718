"""The experiments about kernels, each with a hole that is another one than it asks for: none of them may pass.

All runs start together at the first test, since each mostly waits. The same runs with nothing wrong are the experiments
themselves. A rule for another port, one that was forgotten and the like are in ``tests/run/test_real_runs.py``.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.fault import Cut, Fault, Placement, Scope
from lab.core.flow import Direction
from lab.experiments import test_busy as busy
from lab.experiments import test_handshake as handshake
from lab.experiments import test_heal as heal
from lab.experiments import test_idle as idle
from lab.experiments import test_live_close as live_close
from lab.experiments import test_one_way as one_way
from lab.experiments import test_orphans as orphans
from lab.experiments import test_placement as placement
from lab.experiments import test_reconnect as reconnect
from lab.experiments import test_released_dark as released_dark
from lab.experiments import test_zero_window as zero_window
from lab.experiments.common import one_send
from lab.report.record import Outcome, Record
from lab.run.runner import Run
from lab.run.spec import RunSpec
from lab.testbed.ports import CutReceipt, Testbed
from tests.sabotage import Sabotage, SideBySide, cut_nothing, heal_by_itself, opener, spoil

HEALED_S = 0.5
"""Before anything is due."""

AT_ONCE = 12


def another(**changes: Any) -> Sabotage:
    """Does everything with another fault, and says that it was the one that was asked for."""

    def sabotage(testbed: Testbed) -> None:
        router = testbed.router
        prepare, cut, heals, matched = router.prepare, router.cut, router.heal, router.matched

        def as_asked(fault: Fault) -> object:
            counts, asked = matched(replace(fault, **changes)), fault.direction.directions
            return replace(
                counts,
                forward=counts.forward if Direction.FORWARD in asked else 0,
                return_=counts.return_ if Direction.RETURN in asked else 0,
            )

        spoil(
            router,
            prepare=lambda fault: prepare(replace(fault, **changes)),
            cut=lambda fault: cut(replace(fault, **changes)),
            heal=lambda fault: heals(replace(fault, **changes)),
            matched=as_asked,
        )

    return sabotage


def heal_nothing(testbed: Testbed) -> None:
    def heals(_: Fault) -> CutReceipt:
        now = time.monotonic()
        return CutReceipt(now, now)

    spoil(testbed.router, heal=heals)


def heal_unasked(testbed: Testbed) -> None:
    heal_by_itself(testbed, after_s=HEALED_S)


def soon(spec: RunSpec, watch_s: float = 2.0) -> RunSpec:
    """The same, watched for as long as it takes to see what is wrong."""
    return replace(spec, watch_s=watch_s)


def in_own_output(spec: RunSpec) -> RunSpec:
    return replace(spec, placement=Placement.OWN_OUTPUT)


BOTH, ROUTER = another(direction=Cut.BOTH), another(placement=Placement.ROUTER)


@dataclass(frozen=True)
class Case:
    """What is wrong with which experiment."""

    experiment: Callable[..., None]
    spec: RunSpec
    sabotage: Sabotage
    failed: str | None
    """The check that tells; None where the run proves a hole, in another place than the experiment is about."""


CASES = {
    "busy, one way": Case(
        busy.test_both_kernels_and_both_programs_give_up,
        soon(busy.BOTH),
        another(direction=Cut.RETURN),
        "nothing-crossed",
    ),
    "busy, no rule": Case(
        busy.test_both_kernels_and_both_programs_give_up, soon(busy.BOTH), cut_nothing, "nothing-crossed"
    ),
    "SYN, no rule": Case(
        handshake.test_syn_unanswered, handshake.SYN["retries1-linear0"], cut_nothing, "nothing-crossed"
    ),
    "SYN/ACK, both ways": Case(
        handshake.test_synack_unanswered, handshake.SYNACK["retries1"], BOTH, "nothing-else-lost"
    ),
    "never healed": Case(heal.test_delivered_at_the_next_copy, soon(heal.SOON, 4.0), heal_nothing, "nothing-else-lost"),
    "healed unasked": Case(
        heal.test_delivered_at_the_next_copy, soon(heal.SOON, 4.0), heal_unasked, "rule-matched-return"
    ),
    "idle, healed unasked": Case(
        idle.test_nobody_ever_notices, soon(idle.NO_KEEPALIVE), heal_unasked, "nothing-crossed"
    ),
    "keepalive, no rule": Case(
        idle.test_keepalive_ends_it_by_count,
        soon(idle.KEEPALIVE["idle1-interval1-count2"], 4.0),
        cut_nothing,
        "nothing-crossed",
    ),
    "forward only, both ways": Case(
        one_way.test_request_lost_and_server_never_told,
        soon(one_send(direction=Cut.FORWARD)),
        BOTH,
        "nothing-else-lost",
    ),
    "return only, both ways": Case(
        one_way.test_request_arrived_and_client_is_never_told,
        soon(one_send(direction=Cut.RETURN)),
        BOTH,
        "nothing-else-lost",
    ),
    "orphan, healed unasked": Case(
        orphans.test_a_close_that_nobody_foresaw,
        soon(orphans.UNFORESEEN["nothing-in-flight"], 4.0),
        heal_unasked,
        "nothing-crossed",
    ),
    "FIN_WAIT2, no rule": Case(
        orphans.test_fin_wait_2, orphans.FIN_WAIT_2["fin-timeout-2"], cut_nothing, "nothing-crossed"
    ),
    "own OUTPUT, in the router": Case(
        placement.test_in_the_own_output_nothing_leaves_and_nothing_counts_as_resent,
        soon(placement.OWN_OUTPUT),
        ROUTER,
        None,
    ),
    "own OUTPUT, no rule": Case(
        placement.test_in_the_own_output_nothing_leaves_and_nothing_counts_as_resent,
        soon(placement.OWN_OUTPUT),
        cut_nothing,
        "nothing-crossed",
    ),
    "flow, the whole host": Case(
        reconnect.test_it_passes_where_one_flow_is_dark,
        soon(reconnect.FLOW),
        another(scope=Scope.HOST),
        "bystander-unharmed",
    ),
    "host, one flow": Case(
        reconnect.test_it_is_lost_where_the_host_is_dark,
        soon(reconnect.HOST),
        another(scope=Scope.FLOW),
        "nothing-crossed",
    ),
    "zero window, one way": Case(
        zero_window.test_in_the_dark_the_probes_are_counted,
        soon(zero_window.DARK["probes-3"]),
        another(direction=Cut.RETURN),
        "nothing-crossed",
    ),
    "queued close in own OUTPUT, in the router": Case(
        live_close.test_in_the_own_output_a_queued_close_comes_with_the_next_probe,
        in_own_output(live_close.QUEUED),
        ROUTER,
        None,
    ),
    "released, never healed": Case(
        released_dark.test_the_application_is_done_at_once_and_the_kernel_goes_on_when_its_socket_is_let_go,
        released_dark.ORPHAN["healed-too-late"],
        heal_nothing,
        "nothing-else-lost",
    ),
}

Ran = tuple[Record, Path]


def performed(folder: Path) -> Callable[[str], Ran]:
    """Runs the case of a name."""
    gate = threading.BoundedSemaphore(AT_ONCE)

    def run(name: str) -> Ran:
        case, out = CASES[name], folder / "".join(letter if letter.isalnum() else "-" for letter in name)
        with gate:
            return Run(case.spec, opener(case.sabotage), out=out).execute(), out

    return run


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide[Ran]]:
    with SideBySide(CASES, performed(tmp_path_factory.mktemp("sabotage"))) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_an_experiment_with_another_hole_than_it_asks_for_fails_and_the_run_says_why(
    stage: SideBySide[Ran], name: str
) -> None:
    record, folder = stage[name]
    case = CASES[name]
    given = {"spec": case.spec, "record": record, "folder": folder}
    names = case.experiment.__code__.co_varnames[: case.experiment.__code__.co_argcount]

    with pytest.raises((AssertionError, ValueError)):
        case.experiment(**{each: given[each] for each in names})
    if case.failed is None:
        assert record.outcome is not Outcome.INVALID or record.disturbed, record.reason
    else:
        assert record.outcome is Outcome.INVALID
        assert case.failed in {check.name for check in record.checks if not check.ok}
