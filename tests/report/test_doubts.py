from typing import Any

import pytest

from lab.core.verdict import DATED_WITHIN_S
from lab.report.doubts import doubts
from lab.report.record import (
    Activity,
    Branch,
    Bystander,
    Cause,
    Crossed,
    EndPrediction,
    FaultRecord,
    OrphanObservation,
    Outcome,
    Prediction,
    Record,
)
from tests.report.cases import CASES, both_ways, keepalive


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_record_that_agrees_with_itself_raises_none(case: str) -> None:
    assert doubts(CASES[case]()[0]) == ()


def observing(**changes: Any) -> Record:
    record, _ = both_ways()
    return record.model_copy(update={"observation": record.observation.model_copy(update=changes)})


def client(**changes: Any) -> Record:
    return observing(client=both_ways()[0].observation.client.model_copy(update=changes))


def predicting(branch: Branch | None) -> Record:
    record, _ = both_ways()
    end = EndPrediction(applied=Activity.SENDING, sending=branch)
    return record.model_copy(update={"prediction": record.prediction.model_copy(update={"client": end})})


def changed(**changes: Any) -> Record:
    return both_ways()[0].model_copy(update=changes)


@pytest.mark.parametrize(
    ("record", "doubt"),
    [
        (client(gave_up_s=14.0), "client: gave up at 14.00 s, predicted 14.64 to 15.27 s"),
        (client(gave_up_s=15.28), "client: gave up at 15.28 s, predicted 14.64 to 15.27 s"),
        (client(gave_up_s=None), "client: did not give up, predicted 14.64 to 15.27 s"),
        (client(cause=Cause.RESET), "client: gave up by reset, predicted retries2"),
        (client(copies=15), "client: 15 copies, predicted 16 to 16"),
        (client(copies=17), "client: 17 copies, predicted 16 to 16"),
        (predicting(Branch(cause=Cause.RETRIES2)), "client: gave up at 14.95 s, predicted never"),
        (observing(bystander=Bystander(alive=False, lost=0)), "the bystander is not known to have lived"),
        (observing(bystander=Bystander()), "the bystander is not known to have lived"),
        (observing(bystander=Bystander(alive=True, lost=2)), "the bystander lost 2 segments"),
        (observing(crossed=Crossed(rst=1, icmp=2)), "through the hole came 1 RST, 2 ICMP"),
        (changed(interrupted=True), "the run was interrupted"),
        (changed(fault=FaultRecord()), "nothing was cut"),
        (changed(prediction=Prediction()), "no prediction applied to either end"),
    ],
)
def test_a_confirmation_that_its_own_figures_contradict_is_doubted(record: Record, doubt: str) -> None:
    assert doubt in doubts(record)


def test_other_outcomes_are_not_doubted() -> None:
    record, _ = keepalive()
    assert record.outcome is Outcome.REFUTED
    assert doubts(record) == ()


def test_few_copies_are_no_doubt_while_the_end_lives() -> None:
    alive = client(gave_up_s=None, copies=3).model_copy(update={"horizon_s": 3.0})
    assert doubts(alive) == ()


def test_a_reset_after_the_heal_by_a_peer_that_had_ended_raises_none() -> None:
    """The client gave up, the path came back, and the server's next copy was answered with a RST."""
    record, _ = both_ways()
    observation = record.observation
    told = observation.server.model_copy(update={"gave_up_s": 17.0, "cause": Cause.RESET})
    assert record.fault.cut_at is not None
    healed = record.fault.model_copy(update={"healed_at": record.fault.cut_at + 16.5})
    too_early = record.fault.model_copy(update={"healed_at": record.fault.cut_at + 1.0})
    seen = record.model_copy(update={"observation": observation.model_copy(update={"server": told}), "fault": healed})

    assert doubts(seen) == ()
    assert doubts(seen.model_copy(update={"fault": too_early})) != ()
    assert doubts(seen.model_copy(update={"fault": record.fault})) != ()


def with_an_orphan(predicted: tuple[float, float] = (7.0, 7.5), **changes: Any) -> Record:
    """A client whose program closes at 3.4 s, after more copies than its kernel has for an orphan."""
    orphan = OrphanObservation(copies=2, gone_s=7.2, gone_within_s=0.003, cause=Cause.ORPHAN_RETRIES)
    record = client(
        closed_s=3.4, gave_up_s=None, cause=Cause.NONE, orphan=orphan.model_copy(update=changes), recovered_s=None
    )
    said = record.prediction.client.model_copy(
        update={"orphan": Branch(cause=Cause.ORPHAN_RETRIES, window_s=predicted, copies=(1, 2))}
    )
    return record.model_copy(update={"prediction": record.prediction.model_copy(update={"client": said})})


def test_an_orphans_end_as_predicted_raises_none() -> None:
    assert doubts(with_an_orphan()) == ()


@pytest.mark.parametrize(
    ("record", "doubt"),
    [
        (with_an_orphan((3.0, 3.5)), "client: its orphan was gone at 7.200 s, predicted 3.000 to 3.500 s"),
        (with_an_orphan(cause=Cause.RETRIES2), "client: its orphan ended by retries2, predicted orphan-retries"),
        (
            with_an_orphan(gone_s=None, cause=Cause.NONE),
            "client: its orphan was still there at the end, predicted to go 7.000 to 7.500 s",
        ),
    ],
)
def test_an_orphans_end_beside_its_prediction_is_doubted(record: Record, doubt: str) -> None:
    assert doubts(record) == (doubt,)


@pytest.mark.parametrize(("late_s", "doubted"), [(DATED_WITHIN_S - 0.001, False), (DATED_WITHIN_S + 0.001, True)])
def test_an_orphan_is_overdue_when_the_run_finds_it_overdue(late_s: float, doubted: bool) -> None:
    record = with_an_orphan(gone_s=None, cause=Cause.NONE).model_copy(update={"horizon_s": 7.5 + late_s})

    assert any("still there" in doubt for doubt in doubts(record)) is doubted


def test_the_copies_of_an_orphan_are_not_held_against_the_branch_of_an_open_socket() -> None:
    record = with_an_orphan()
    idle = EndPrediction(applied=Activity.IDLE, idle=Branch(cause=Cause.NONE, copies=(0, 0)))
    seen = record.observation.client.model_copy(update={"closed_s": 0.01})
    changed = record.model_copy(
        update={
            "prediction": record.prediction.model_copy(update={"client": idle}),
            "observation": record.observation.model_copy(update={"client": seen}),
        }
    )

    assert doubts(changed) == ()
