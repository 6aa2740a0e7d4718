from typing import Any

import pytest

from lab.report.record import Activity, Branch, Cause, Check, NoticedBy, OrphanObservation, Outcome, Record
from lab.report.summary import Row, Summary, summarise
from lab.report.units import window
from tests.report.cases import CASES, NEVER


def summary_of(case: str) -> Summary:
    return summarise(CASES[case]()[0])


def row(summary: Summary, quantity: str) -> Row:
    [found] = [row for row in summary.rows if row.quantity == quantity]
    return found


def test_prediction_stands_beside_measurement() -> None:
    summary = summary_of("both-ways")
    assert row(summary, "gave up").client == ("14.64 to 15.27 s", "14.95 s")
    assert row(summary, "cause").client == ("retries2", "retries2")
    assert row(summary, "copies").server == ("16", "16")
    assert row(summary, "error").client == ("", "ETIMEDOUT")
    assert row(summary, "noticed").server == ("", "15.21 s, output")
    assert row(summary, "traffic").client == ("sending", "lost at 0.031 s")


def test_the_server_that_was_never_told_is_not_missing_data() -> None:
    summary = summary_of("return-only")
    assert row(summary, "gave up").server == ("never", "not in 20 s")
    assert row(summary, "noticed").server == ("", "not in 20 s")


def test_never_is_confirmed_up_to_the_horizon_only() -> None:
    summary = summary_of("idle-for-ever")
    assert summary.headline == "CONFIRMED up to the horizon only"
    assert "after 30 s the fate of the client and the server was still open" in summary.verdict
    assert summary_of("both-ways").headline == "CONFIRMED"


def closed_by_its_program(case: str, end: str, closed_s: float, **changes: object) -> Record:
    record, _ = CASES[case]()
    seen = getattr(record.observation, end).model_copy(
        update={"closed_s": closed_s, "gave_up_s": None, "cause": Cause.NONE, "copies": 5}
    )
    observation = record.observation.model_copy(update={end: seen})
    return record.model_copy(update={"observation": observation, **changes})


def test_a_program_that_closed_before_its_kernel_was_due_is_not_called_open() -> None:
    verdict = summarise(closed_by_its_program("idle-for-ever", "client", 2.5)).verdict

    assert "the client's program closed the flow at 2.500 s; its kernel would never have given up" in verdict
    assert "the fate of the server was still open" in verdict


@pytest.mark.parametrize("horizon_s", [4.0, 16.2])
def test_a_close_is_the_headline_however_long_was_watched(horizon_s: float) -> None:
    record = closed_by_its_program("outside", "client", 3.358, horizon_s=horizon_s)
    summary = summarise(record)

    assert summary.headline == "CONFIRMED"
    due = window((record.prediction.client.branch or NEVER).window_s)
    closed = f"the client's program closed the flow at 3.358 s, before its kernel would have given up ({due})"
    assert summary.verdict == closed


def test_beside_a_close_the_other_end_is_told_of() -> None:
    summary = summarise(closed_by_its_program("both-ways", "client", 3.358))

    assert summary.headline == "CONFIRMED"
    assert summary.verdict.endswith("(14.64 to 15.27 s); the server met its fate as predicted")


def test_what_was_predicted_of_a_flow_that_was_closed_does_not_read_as_refuted() -> None:
    summary = summarise(closed_by_its_program("both-ways", "client", 3.358))

    assert row(summary, "gave up").client == ("(14.64 to 15.27 s)", "closed at 3.358 s")
    assert row(summary, "cause").client == ("(retries2)", "closed by program")
    assert row(summary, "copies").client == ("(16)", "5 until closed")
    assert "orphan gone" not in {row.quantity for row in summary.rows}
    assert row(summary, "copies").server == ("16", "16")


ORPHAN = OrphanObservation(copies=2, gone_s=7.2, gone_within_s=0.003, cause=Cause.ORPHAN_RETRIES)
GONE = Branch(cause=Cause.ORPHAN_RETRIES, window_s=(7.0, 7.5), copies=(1, 2))


def with_an_orphan(orphan: OrphanObservation = ORPHAN, predicted: Branch | None = GONE, **changes: Any) -> Record:
    """The client's program closes by 3.358 s, after three of five copies."""
    record = closed_by_its_program("both-ways", "client", 3.358)
    times = {"copy_times_s": (0.2, 0.4, 0.9, 4.0, 5.7), "copy_classes": ()}
    signs = {"noticed_s": 3.358, "noticed_by": NoticedBy.CLOSE, "errno": None, "held_s": 3.1}
    seen = record.observation.client.model_copy(update={**times, **signs, "orphan": orphan, **changes})
    said = record.prediction.client.model_copy(update={"orphan": predicted})
    return record.model_copy(
        update={
            "observation": record.observation.model_copy(update={"client": seen}),
            "prediction": record.prediction.model_copy(update={"client": said}),
        }
    )


def test_copies_after_a_close_are_the_orphans_and_its_end_is_told() -> None:
    summary = summarise(with_an_orphan())

    assert row(summary, "copies").client == ("(16)", "3 until closed")
    assert row(summary, "gave up").client == ("(14.64 to 15.27 s)", "closed by 3.358 s")
    assert row(summary, "orphan gone").client == ("7.000 to 7.500 s", "7.200 s")
    assert row(summary, "its cause").client == ("orphan-retries", "orphan-retries")
    assert row(summary, "its copies").client == ("1 to 2", "2")
    assert row(summary, "orphan gone").server == ("", "")
    assert "closed the flow between 3.100 and 3.358 s, before" in summary.verdict
    assert "and its orphan was gone at 7.200 s, as predicted (7.000 to 7.500 s)" in summary.verdict


def test_an_orphan_of_which_nothing_was_predicted_is_said_to_be_one() -> None:
    summary = summarise(with_an_orphan(predicted=None))

    assert row(summary, "orphan gone").client == ("not predicted", "7.200 s")
    assert "gone at 7.200 s, of which nothing was predicted" in summary.verdict


def test_an_orphan_that_outlived_the_watch_is_not_called_gone() -> None:
    there = OrphanObservation(copies=2, cause=Cause.NONE)
    summary = summarise(with_an_orphan(there).model_copy(update={"horizon_s": 6.0}))

    assert row(summary, "orphan gone").client == ("7.000 to 7.500 s", "not in 6 s")
    assert "still there at 6 s; its end, predicted for 7.000 to 7.500 s, was not seen" in summary.verdict
    unsaid = summarise(with_an_orphan(there, None).model_copy(update={"horizon_s": 6.0}))
    assert "still there at 6 s; its end was neither predicted nor seen" in unsaid.verdict


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "unknown (closed)"),
        ({"noticed_by": NoticedBy.EXIT}, "unknown (exited)"),
        ({"noticed_by": NoticedBy.EXIT, "closed_s": None}, "unknown (exited 3.358 s)"),
        ({"noticed_by": NoticedBy.OUTPUT}, "3.358 s, output"),
        ({"noticed_by": NoticedBy.EXIT, "gave_up_s": 3.35, "closed_s": None}, "3.358 s, exit"),
    ],
)
def test_why_a_program_closed_or_left_is_not_known_unless_its_kernel_had_told_it(
    changes: dict[str, Any], said: str
) -> None:
    assert row(summarise(with_an_orphan(**changes)), "noticed").client == ("", said)


def test_an_end_that_lost_nothing_but_its_close_was_idle() -> None:
    record = with_an_orphan()
    idle = record.prediction.client.model_copy(update={"applied": Activity.IDLE})
    prediction = record.prediction.model_copy(update={"client": idle})

    assert row(summarise(record.model_copy(update={"prediction": prediction})), "traffic").client == (
        "idle",
        "idle until closed",
    )


def test_a_close_after_the_heal_is_no_end_of_the_prediction() -> None:
    assert closed_by_its_program("healed", "client", 1.5).ends_closed == ("client",)
    assert closed_by_its_program("healed", "client", 2.5).ends_closed == ()


def test_a_refusal_and_an_invalid_run_say_why() -> None:
    assert summary_of("keepalive").verdict == "client: gave up at 8.950 s, predicted 9.300 to 10.300 s"
    summary = summary_of("interrupted")
    assert (summary.headline, summary.verdict) == ("INVALID", "interrupted before the cut")
    assert summary.rows == ()
    assert summary.closing == ()


def test_an_outcome_without_a_reason_is_not_given_one() -> None:
    assert summarise(Record(outcome=Outcome.REFUTED, backend="netns")).verdict == "the record does not say why"


def test_the_real_world_figure_stands_beside_the_compressed_one() -> None:
    closing = dict(summary_of("both-ways").closing)
    assert closing["client, real"] == "15 min 25 s to 15 min 46 s (retries2); here 14.64 to 15.27 s"
    assert "real world" not in dict(summary_of("return-only").closing)


def test_what_was_done_is_said() -> None:
    facts = dict(summary_of("healed").facts)
    assert facts["cut"] == "both, flow scope, healed after 2.000 s (predicted is without it)"
    assert facts["dropped"] == "5 forward, 0 return"
    facts = dict(summary_of("both-ways").facts)
    assert facts["backend"] == "netns, profile fast, Linux 6.18.0, HZ 250"


def test_failed_checks_are_found() -> None:
    checks = (Check(name="bystander", ok=True), Check(name="clock", ok=False, detail="moved 3 ms"))
    summary = summarise(Record(outcome=Outcome.INVALID, backend="netns", checks=checks))
    assert [check.name for check in summary.failed] == ["clock"]


def test_a_server_outside_is_not_observed_and_its_last_copy_is_told() -> None:
    summary = summary_of("outside")

    assert summary.verdict == "the client met its fate as predicted"
    assert row(summary, "gave up").server == ("outside", "outside")
    assert row(summary, "copies").server == ("outside", "9, last at 7.047 s")
    assert row(summary, "noticed").server == ("", "outside")
    told = dict(summary.facts)["server"]
    assert "staging.example.com, outside: its kernel and program were not observed" in told
    assert "198.51.100.7:40112" in told
    assert "server" not in dict(summary_of("both-ways").facts)
    assert summary.doubts == ()
