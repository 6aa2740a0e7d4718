"""The experiments of ends on a dark path, each with one thing wrong: none of them may pass.

All runs start together at the first test, since each mostly waits. The same runs with nothing wrong are the experiments
themselves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lab.core.prediction import State
from lab.experiments import test_held_dark as held_dark
from lab.experiments import test_host_dark as host_dark
from lab.experiments import test_released_dark as released_dark
from lab.experiments.programs import said
from lab.live.lifecycle import PUBLISHED
from lab.report.record import Outcome, Record
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from tests.experiments.saboteurs.telling_releaser import STATUS_PORT
from tests.sabotage import Sabotage, SideBySide, cut_nothing, nothing, opener

HERE = "tests.experiments.saboteurs"
TRIES = 3
"""A busy machine spoils a run now and then; that is INVALID too, and not what is wanted here."""

GIVES_UP_S = 5.0
"""How long the session server waits for the answer to a close frame."""

CONFIRMED = "record.outcome is Outcome.CONFIRMED"
GAVE_UP = 'given_up(record, "server")'
"""The lines that experiments begin with: the run's own proofs."""

TOLD = '(told,) = lines(folder, "client", "told"'

Experiment = Callable[[RunSpec, Record, Path], None]

NEVER_KNOWS: Experiment = host_dark.test_without_one_a_remote_that_asks_nothing_never_knows
TOLD_WITH_THE_COPY: Experiment = host_dark.test_healed_in_time_the_end_is_told_with_the_next_copy
DONE_AT_ONCE: Experiment = (
    released_dark.test_the_application_is_done_at_once_and_the_kernel_goes_on_when_its_socket_is_let_go
)

WATCHED: Experiment = held_dark.test_a_watchdog_tells_within_two_seconds_and_its_connection_is_an_orphan
NOBODY_TOLD: Experiment = held_dark.test_held_and_idle_nobody_is_ever_told


def by(module: str, program: Program | None) -> Program:
    """The same program by a saboteur."""
    assert program is not None
    return replace(program, module=f"{HERE}.{module}")


SILENT, DARK = host_dark.DARK["silent"], released_dark.ORPHAN["dark"]
STATUS = ("--status-port", str(STATUS_PORT))


@dataclass(frozen=True)
class Case:
    """What is wrong with which experiment."""

    experiment: Experiment
    spec: RunSpec
    fails_at: str
    """Part of the line at which it has to fail: the one that is about what is wrong."""

    sabotage: Sabotage = nothing


CASES = {
    "no rule, host": Case(NEVER_KNOWS, replace(SILENT, watch_s=2.0, actions=host_dark.ENDS), GAVE_UP, cut_nothing),
    "no rule, released": Case(DONE_AT_ONCE, released_dark.release(watch_s=2.0), CONFIRMED, cut_nothing),
    "told beside the path, host": Case(
        NEVER_KNOWS,
        replace(
            SILENT,
            server=by("telling_host", SILENT.server),
            client=by("telling_host", SILENT.client),
            # Told, it asks, and is over with its kernel's give-up.
            actions=(*host_dark.ENDS, Action(5.0, "server", "status"), Action(5.0, "client", "status")),
        ),
        'said(folder, "client", "told") == said(folder, "client", "ended") == []',
    ),
    "told beside the path, released": Case(
        DONE_AT_ONCE,
        replace(
            # Over before the server's kernel gives up on its close frame, 5.8 s after it was told.
            released_dark.release(client_state=State.FIN_WAIT_1, watch_s=5.5),
            server=Program((*DARK.server.argv, *STATUS) if DARK.server else (), "lab.live.server"),
            client=by("telling_releaser", DARK.client),
        ),
        "counted(folder) == ",
    ),
    "a host that tells nobody": Case(
        TOLD_WITH_THE_COPY,
        host_dark.call(
            *host_dark.AWAITS, job=("--variant", "no session_closed"), heal_after_s=1.0, watch_s=6.0, writes_on=False
        ),
        TOLD,
    ),
    "a session that leaks": Case(
        DONE_AT_ONCE,
        released_dark.release(PUBLISHED.name, client_state=State.FIN_WAIT_1, watch_s=6.0),
        "client.cause is Cause.ORPHAN_RETRIES",
    ),
    "no rule, held": Case(NOBODY_TOLD, held_dark.held(watch_s=2.0), CONFIRMED, cut_nothing),
    # Its application closes it, so that there is an orphan as behind a watchdog.
    "no watchdog": Case(
        WATCHED, held_dark.held((held_dark.DOES_S, "close"), client_state=State.FIN_WAIT_1, watch_s=7.0), TOLD
    ),
    "idle, and yet watched": Case(NOBODY_TOLD, held_dark.held(watch=True, watch_s=6.0), "client.first_lost_s is None"),
}


Ran = tuple[Record, Path]


def tried(folder: Path) -> Callable[[str], Ran]:
    """Runs the case of a name, again where the machine was busy."""

    def run(name: str) -> Ran:
        case = CASES[name]
        for number in range(TRIES):
            out = folder / f"{name.replace(' ', '-')}-{number}"
            record = Run(case.spec, opener(case.sabotage), out=out).execute()
            if not record.disturbed:
                break
        return record, out

    return run


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide[Ran]]:
    with SideBySide(CASES, tried(tmp_path_factory.mktemp("sabotage"))) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_an_experiment_with_something_wrong_fails_at_the_line_that_is_about_it(
    stage: SideBySide[Ran], name: str
) -> None:
    record, folder = stage[name]
    case = CASES[name]

    assert not record.disturbed, f"{TRIES} times: {record.reason}"
    # A ValueError is a line that is there once in a run as it should be.
    with pytest.raises((AssertionError, ValueError)) as failed:
        case.experiment(case.spec, record, folder)
    at = [entry for entry in failed.traceback if entry.name == case.experiment.__name__][-1]
    assert case.fails_at in str(at.statement)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("no rule")])
def test_without_a_rule_the_run_is_invalid_and_says_so(stage: SideBySide[Ran], name: str) -> None:
    record, _ = stage[name]

    assert record.outcome is Outcome.INVALID
    assert "nothing-crossed" in (record.reason or "")


def test_what_was_told_beside_the_path_is_seen_though_each_proof_of_the_hole_holds(
    stage: SideBySide[Ran],
) -> None:
    """The server tells of no detach before it gives up on its own close: until then its count alone betrays it."""
    (held, host), (shut, released) = (stage[f"told beside the path, {end}"] for end in ("host", "released"))

    assert (held.outcome, shut.outcome) == (Outcome.CONFIRMED, Outcome.CONFIRMED)
    assert said(host, "client", "told")
    assert [at for at in said(released, "server", "detach") if at < GIVES_UP_S] == []
    assert released_dark.counted(released) == (1, {"ended"})
