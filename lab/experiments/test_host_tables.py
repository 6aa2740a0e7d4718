"""Question: is everybody told when a session ends, and does its host stay reachable?

Topology: a job with its host, and a remote, over framed TCP and over WebSocket on loopback; nothing is lost here.

Prediction: the repaired host tells every end with its reason and error, before its transport goes; without a session it
answers at once, and under a simulation it serves until the verdict. Each published defect, alone, is wrong in the cases
that it is about, each in the way that was published.

Look at: the rows themselves; ``lab/host/tables/`` says how each is measured.
"""

import pytest

from lab.experiments.apart import apart
from lab.host.machine.variant import REPAIRED, VARIANTS
from lab.host.protocol.messages import CloseReason
from lab.host.tables import Row, host_rows
from lab.host.tables.rows import Question
from lab.host.tables.stage import CARRIERS, REQUEST_S, SESSION_END_S


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return apart(host_rows)


def test_every_repair_holds_and_every_defect_shows(rows: list[Row]) -> None:
    assert [row for row in rows if not row.as_predicted] == []
    assert {row.transport for row in rows} == {carrier.name for carrier in CARRIERS}
    assert {row.question for row in rows} == set(Question)
    assert {row.variant for row in rows if row.defective} == set(VARIANTS) - {REPAIRED.name}


def test_both_carriers_show_the_same(rows: list[Row]) -> None:
    def cases(carrier: str) -> list[tuple[str, str, bool]]:
        return [(row.case, row.variant, row.right) for row in rows if row.transport == carrier]

    assert cases("tcp") == cases("websocket") != []


def test_every_reason_is_told_by_the_repaired_host_and_none_by_the_silent_one(rows: list[Row]) -> None:
    repaired = {row.seen.partition(":")[0] for row in rows if row.case.startswith("ended by") and row.right}
    assert {reason.name for reason in CloseReason} == repaired
    assert {row.seen for row in rows if row.variant == "no session_closed" and row.case.startswith("ended by")} == {
        "not told"
    }


def test_the_repaired_host_lets_no_request_wait_out_its_time_out(rows: list[Row]) -> None:
    asked = [row for row in rows if row.variant == REPAIRED.name and row.question is Question.WITHOUT_SESSION]
    assert len(asked) > 2 * len(CARRIERS)
    assert all(row.after_s is None or row.after_s < REQUEST_S / 2 for row in asked)


def test_a_shutdown_waits_for_nobody_but_a_simulator_that_says_nothing(rows: list[Row]) -> None:
    late = {
        row.case
        for row in rows
        if row.question is Question.FINALIZING
        and row.variant == REPAIRED.name
        and row.after_s is not None
        and row.after_s > SESSION_END_S / 2
    }
    assert late == {"the simulator says nothing more"}
