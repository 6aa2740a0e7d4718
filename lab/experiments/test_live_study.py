"""Question: does the published study of lost live sessions come out again, offline, and what of it was left open?

Topology::

    assistant ======x===== router ======== session server      packet loss, one flow
    assistant == freeze proxy in the router == session server  both kernels keep acknowledging
    assistant ============ router ======== session server      the client aborts, closes, or changes its address

Prediction: every row of the study's table, its counts exactly and its times within its ranges or within a tolerance
that has a reason; for what it left open the lab's own prediction, from before the first run. Nowhere is anything booked
twice, but in the one example that is wrong on purpose. See ``lab/study/``.

Look at: ``results/*.jsonl`` in the folder of the session; ``lab live study`` writes FINDINGS.md of the same sessions.
"""

from typing import Any

import pytest

from lab.experiments.studied import Studied
from lab.study.findings import SAVED_S, SAVED_WITHIN_S, agrees_with_study, saved
from lab.study.judgement import Row
from lab.study.new_ground import NEW_GROUND, PARALLEL
from lab.study.recovered import BR1
from lab.study.scenario import Scenario
from lab.study.scenarios import PUBLISHED
from lab.study.sweep import SWEEP


def rows_of(scenarios: tuple[Scenario, ...]) -> list[Any]:
    return [pytest.param(scenario, id=scenario.id) for scenario in scenarios]


@pytest.mark.parametrize("scenario", rows_of(PUBLISHED))
def test_the_study_s_row_comes_out_again(scenario: Scenario, row: Row) -> None:
    assert len(row.valid) == scenario.n, row.failures
    assert row.passed, row.failures
    assert row.double_bookings == 0


@pytest.mark.parametrize("scenario", rows_of(NEW_GROUND))
def test_what_the_study_left_open_is_as_predicted(scenario: Scenario, row: Row) -> None:
    assert row.passed, row.failures
    assert (row.double_bookings > 0) == bool(scenario.wrong_on_purpose)


@pytest.mark.parametrize("scenario", rows_of(SWEEP))
def test_an_idle_abort_frees_the_session_when_the_settle_time_is_over(scenario: Scenario, row: Row) -> None:
    assert row.passed, row.failures
    settle_s = float(str(scenario.server.settings["settle_s"]))
    assert agrees_with_study(row) == (0 < settle_s < 1.6), "the study saw a refusal at once, and none at 1.6 s"


@pytest.mark.parametrize("scenario", rows_of((PARALLEL,)))
@pytest.mark.parametrize("beside", rows_of((BR1,)))
def test_a_new_session_beside_the_resume_attempts_saves_the_window(
    scenario: Scenario, beside: Scenario, row: Row, studied: Studied
) -> None:
    saved_s = saved([studied.row(beside), row])

    assert scenario.id == row.scenario.id
    assert saved_s is not None
    assert saved_s >= SAVED_S - SAVED_WITHIN_S
