import json

from lab.study.judgement import Row, judge_row
from lab.study.scenarios import find
from lab.study.table import as_json, ours, statistics, verdict
from tests.study.streams import b1, br1, r1


def row(name: str, *sessions: object) -> Row:
    return judge_row(find(name), sessions, real=False)  # type: ignore[arg-type]  # sessions of streams


R1_ROW = row("R1", *(r1(k).session("R1", k) for k in range(4)))


def test_a_row_for_scripts_has_what_they_rely_on() -> None:
    shown = json.loads(json.dumps(as_json(R1_ROW), allow_nan=False))

    assert {key: shown[key] for key in ("scenario", "n", "in_range", "refused", "consistent", "double_bookings")} == {
        "scenario": "R1",
        "n": 4,
        "in_range": True,
        "refused": 4,
        "consistent": 3,
        "double_bookings": 0,
    }
    assert "4/4" in shown["study"]
    assert "refused 4 of 7" in shown["ours"]
    assert (shown["attempts"], shown["answers"]) == (7, 3)


def test_a_row_that_the_study_does_not_have_says_nothing_of_its_range() -> None:
    shown = as_json(row("BR1-no-dedupe", br1(count=2, reissued=True).session("BR1-no-dedupe")))

    assert (shown["in_range"], shown["study"], shown["double_bookings"]) == (None, None, 1)
    assert shown["wrong_on_purpose"] is True


def test_ours_reads_as_the_study_does() -> None:
    assert ours(R1_ROW) == (
        "refused 4 of 7; accepted 3; refused after 0.580 s; resumed 2.150 s; announced 0.640 s; bookings 4; "
        "consistent 3 of 3"
    )
    assert "server silent until 479.2 s; copies 11; last copy 596.3 s" in ours(row("B1", b1().session("B1")))
    assert ours(row("B1")) == "nothing"


def test_the_verdict_tells_a_range_a_reason_and_a_failure_apart() -> None:
    assert verdict(R1_ROW) == "in range"
    assert verdict(row("BR1", br1(audio_s=1.25).session("BR1"))) == "outside, as explained"
    assert verdict(row("BR1", br1(audio_s=5).session("BR1"))) == "OUTSIDE"
    assert verdict(row("BR1-parallel", br1().session("BR1-parallel"))) == "NOT AS PREDICTED"
    assert verdict(row("B1", b1(told=True).session("B1"))) == "INVALID"
    assert verdict(row("B1")) == "INVALID"


def test_hundreds_of_sessions_print_intervals() -> None:
    many = row("BR1", *(br1(audio_s=0.8 + k / 1000).session("BR1", k) for k in range(200)))

    assert "consistent 200 of 200 (95 %: 98.1% to 100.0%)" in ours(many)
    assert "first audio median 6.570 (6.555 to 6.584), 5 % to 95 % 6.480 to 6.659 s" in ours(many)
    assert {each["what"]: each.get("low") for each in statistics(many)}["sessions with exactly one booking"] == 0.9812


def test_a_few_sessions_have_no_interval_of_the_median() -> None:
    (detected,) = (each for each in statistics(R1_ROW) if each["what"] == "time to the refusal")

    assert (detected["n"], detected["median"], detected["median_within"]) == (4, 0.58, None)
