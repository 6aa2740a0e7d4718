from dataclasses import replace

import pytest

from lab.study.judgement import Row, Session, Standing, judge_row, judge_session
from lab.study.scenario import Quantity
from lab.study.scenarios import find
from tests.study.streams import Stream, b1, br1, r1

R1, BR1, B1 = find("R1"), find("BR1"), find("B1")


def r1_row(*streams: Stream) -> Row:
    return judge_row(R1, [made.session("R1", k) for k, made in enumerate(streams)], real=False)


def br1_row(*streams: Stream) -> Row:
    return judge_row(BR1, [made.session("BR1", k) for k, made in enumerate(streams)], real=False)


def test_sessions_as_the_study_s_make_a_row_in_range() -> None:
    row = r1_row(*(r1(k) for k in range(4)))

    assert row.in_range is True
    assert row.reasons == ()
    assert (row.total(Quantity.REFUSED), row.total(Quantity.CONSISTENT), row.double_bookings) == (4, 3, 0)
    assert br1_row(br1(), br1(), br1(), br1()).in_range is True


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_any_number_of_sessions_is_judged_by_what_each_of_them_should_do(n: int) -> None:
    assert r1_row(*(r1(k) for k in range(n))).in_range is True


def test_a_second_booking_never_passes() -> None:
    row = br1_row(br1(), br1(count=2))

    assert row.double_bookings == 1
    assert not row.passed
    assert row.in_range is False
    assert "session 2 made 2 bookings" in row.problems


def test_a_second_and_a_missing_booking_do_not_make_up_for_each_other() -> None:
    row = br1_row(br1(count=2), br1(count=0))

    assert not row.passed
    assert row.total(Quantity.BOOKINGS) == 2


def test_a_missing_refusal_never_passes() -> None:
    row = br1_row(br1(), br1().without("refused"))

    assert not row.passed
    assert any("resume attempts refused with 1011: 3 instead of 4 in session 2" in reason for reason in row.reasons)


def test_a_resume_that_is_accepted_during_a_silent_loss_never_passes() -> None:
    row = br1_row(br1(early=True))

    assert not row.passed
    assert any("resume attempts accepted: 1 instead of 0" in reason for reason in row.reasons)


def test_a_call_issued_again_where_none_should_be_never_passes() -> None:
    assert not br1_row(br1(reissued=True)).passed


def test_an_answer_that_is_not_the_truth_never_passes() -> None:
    assert not r1_row(r1(0), r1(1, consistent=False)).passed


def test_a_time_a_little_outside_is_as_modelled_but_not_in_range() -> None:
    row = br1_row(br1(audio_s=1.25))

    assert row.passed
    assert row.in_range is False
    assert any("1.250, the study's 0.76 to 1.2" in reason and "the machine's load" in reason for reason in row.reasons)


def test_a_time_far_outside_does_not_pass() -> None:
    row = br1_row(br1(audio_s=2.5))

    assert not row.passed
    assert any("3.75" not in reason and "0.76 to 1.2" in reason for reason in row.reasons)


def test_a_time_is_judged_with_as_many_decimals_as_the_study_gives() -> None:
    assert br1_row(br1(audio_s=1.204)).in_range is True, "the study says 1.20 s"
    assert br1_row(br1(audio_s=1.206)).in_range is False


def test_an_invalid_session_keeps_its_row_out_of_range_whatever_the_others_did() -> None:
    row = judge_row(B1, [b1().session("B1", 0), b1(told=True).session("B1", 1)], real=False)

    assert row.in_range is False
    assert not row.passed
    assert row.problems[0].startswith("session 2 is INVALID: the loss was not silent")
    assert judge_row(B1, [b1().session("B1", 0)], real=False).passed


def test_no_sessions_are_no_pass() -> None:
    row = judge_row(B1, [], real=False)

    assert (row.in_range, row.passed) == (False, False)
    assert not judge_row(B1, [b1(told=True).session("B1")], real=False).passed


def test_a_script_that_got_stuck_keeps_its_row_from_passing() -> None:
    stuck = br1().say(14.0, "stuck", step=5, do="ask", why="no answer within 30 s")

    assert not br1_row(stuck).passed


def test_a_kernel_that_did_otherwise_keeps_its_row_from_passing() -> None:
    session = br1().session("BR1", refuted="the client's kernel gave up at 20 s")

    assert not judge_row(BR1, [session], real=False).passed


def test_what_was_expected_and_not_seen_is_missing() -> None:
    row = br1_row(br1().without("audio_first"))

    assert not row.passed
    assert {each.standing for each in row.findings if each.expected.quantity is Quantity.FIRST_AUDIO_S} == {
        Standing.MISSING
    }


def test_in_a_lapse_the_median_refusal_decides() -> None:
    made = b1()
    made.assistant[[each["event"] for each in made.assistant].index("refused")]["took_s"] = 30.0
    row = judge_row(B1, [made.session("B1")], real=False)

    assert row.passed
    assert not judge_row(B1, [made.session("B1", real=True)], real=True).passed


def test_too_few_refusals_in_a_quarter_of_an_hour_do_not_pass() -> None:
    assert not judge_row(B1, [b1(refusals=89).session("B1")], real=False).passed


def test_a_row_that_the_study_does_not_have_is_never_in_its_range() -> None:
    again = find("BR1-parallel")
    row = judge_row(again, [br1().session("BR1-parallel")], real=False)

    assert row.in_range is None
    assert not row.passed, "BR1's own times are not those of the parallel recovery"


def test_the_wrong_example_is_expected_to_book_twice_and_says_so() -> None:
    wrong = find("BR1-no-dedupe")

    assert judge_row(wrong, [br1(count=2, reissued=True).session(wrong.id)], real=False).passed
    assert not judge_row(wrong, [br1(count=1, reissued=True).session(wrong.id)], real=False).passed


def test_a_single_session_is_judged_without_the_row_s_medians() -> None:
    session: Session = replace(b1().session("B1"), number=1)

    findings = judge_session(B1, session)
    assert all(each.standing.passed for each in findings)
    assert Quantity.REFUSAL_S not in {each.expected.quantity for each in findings}


@pytest.mark.parametrize(
    ("copies", "standing"),
    [(11, Standing.IN_RANGE), (10, Standing.EXPLAINED), (8, Standing.OUT), (12, Standing.OUT)],
)
def test_a_tolerance_bears_on_the_side_that_its_reason_is_about(copies: int, standing: Standing) -> None:
    made = b1()
    assert made.wire is not None
    made.wire = replace(made.wire, copies=copies)
    row = judge_row(B1, [made.session("B1")], real=False)

    assert [each.standing for each in row.findings if each.expected.quantity is Quantity.COPIES] == [standing]
