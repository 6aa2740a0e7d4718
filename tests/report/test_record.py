import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from lab.report.record import Branch, Cause, Check, EndObservation, Observed, Outcome, Record
from tests.report.cases import CASES, NEVER, both_ways, healed, idle_for_ever, interrupted, return_only

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_record_is_written_as_its_golden_file_and_read_back_equal(case: str) -> None:
    record, _ = CASES[case]()
    golden = (GOLDEN / f"{case}.json").read_text()
    assert record.to_json() == golden
    assert Record.model_validate_json(golden) == record


def test_the_minimal_record_has_every_key_of_the_contract() -> None:
    record = json.loads(interrupted()[0].to_json())
    assert record["schema"] == 1
    assert record["outcome"] == "invalid"
    top = ["schema", "outcome", "horizon_s", "backend", "versions", "settings", "fault", "flow"]
    top += ["prediction", "observation", "counters", "checks", "artefacts"]
    assert set(record) >= set(top)
    assert set(record["fault"]) >= {"kind", "scope", "direction", "cut_at", "healed_at", "matched"}
    assert record["fault"]["matched"] == {"forward": None, "return": None}
    assert set(record["prediction"]["client"]) >= {"applied", "sending", "idle"}
    assert set(record["observation"]) >= {"client", "server", "bystander", "crossed"}
    end = ["first_lost_s", "copies", "copy_times_s", "last_copy_s", "gave_up_s", "cause", "errno"]
    end += ["noticed_s", "noticed_by", "never_told"]
    assert set(record["observation"]["server"]) >= set(end)
    assert set(record["observation"]["bystander"]) == {"alive", "lost"}
    assert set(record["observation"]["crossed"]) == {"segments", "rst", "fin", "icmp"}


def test_never_is_null_and_a_window_is_a_pair() -> None:
    record = json.loads(both_ways()[0].to_json())
    client = record["prediction"]["client"]
    assert client["idle"]["window_s"] is None
    assert client["sending"]["window_s"] == pytest.approx([14.641, 15.271])
    assert client["sending"]["copies"] == [16, 16]


def test_keys_of_a_later_version_survive_reading_and_writing() -> None:
    later = json.loads(idle_for_ever()[0].to_json())
    later["colour"] = "blue"
    later["fault"]["depth"] = {"metres": 3}
    again = json.loads(Record.model_validate_json(json.dumps(later)).to_json())
    assert again["colour"] == "blue"
    assert again["fault"]["depth"] == {"metres": 3}


def test_keys_that_are_absent_read_as_unknown() -> None:
    record = Record.model_validate_json('{"schema": 1, "outcome": "unsupported", "backend": "docker"}')
    assert record.observation.client.gave_up_s is None
    assert record.fault.healed_s is None
    assert record.ends_unresolved == ()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_time_that_json_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValidationError):
        EndObservation(gave_up_s=value)
    with pytest.raises(ValidationError):
        Branch(cause=Cause.RETRIES2, window_s=(1.0, value))


def test_a_confirmed_run_with_a_failed_check_is_refused() -> None:
    checks = (Check(name="bystander", ok=True), Check(name="captures-complete", ok=False, detail="3 dropped"))
    with pytest.raises(ValidationError, match="captures-complete"):
        Record(outcome=Outcome.CONFIRMED, backend="netns", checks=checks)
    assert Record(outcome=Outcome.INVALID, backend="netns", checks=checks).checks == checks


def test_a_confirmed_run_without_checks_is_refused() -> None:
    with pytest.raises(ValidationError, match="must list the checks"):
        Record(outcome=Outcome.CONFIRMED, backend="netns")


def test_a_record_does_not_change() -> None:
    record, _ = interrupted()
    with pytest.raises(ValidationError, match="frozen"):
        record.outcome = Outcome.CONFIRMED


def test_a_branch_counts_from_another_origin_and_back() -> None:
    stated = Branch(cause=Cause.RETRIES2, window_s=(14.0, 15.0), copies=(16, 16), copy_windows_s=((0.2, 0.3),))
    applied = stated.counted_from(2.5)
    assert applied.window_s == (16.5, 17.5)
    assert applied.copy_windows_s == ((2.7, 2.8),)
    assert applied.origin_s == 2.5
    assert applied.counted_from(0.0).window_s == stated.window_s
    assert NEVER.counted_from(2.5).window_s is None


def test_ends_are_unresolved_while_their_window_is_open_and_they_live() -> None:
    assert both_ways()[0].ends_unresolved == ()
    assert return_only()[0].ends_unresolved == ("server",)
    assert idle_for_ever()[0].ends_unresolved == ("client", "server")
    assert healed()[0].ends_unresolved == ("server",)


@pytest.mark.parametrize(("horizon_s", "unresolved"), [(15.0, ("client", "server")), (15.3, ("server",)), (16.0, ())])
def test_an_end_that_outlived_its_window_is_resolved(horizon_s: float, unresolved: tuple[str, ...]) -> None:
    record, _ = both_ways()
    alive = record.model_copy(update={"horizon_s": horizon_s, "observation": Observed()})
    assert alive.ends_unresolved == unresolved


def test_a_heal_is_counted_from_the_cut() -> None:
    assert healed()[0].fault.healed_s == 2.0
