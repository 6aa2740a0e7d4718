import pytest

from lab.study.outcome import read
from lab.study.reading import OnTheWire
from lab.study.scenario import Loss, Quantity
from tests.study.streams import Stream, b1, br1, pick, r1


def test_an_abort_s_refusal_and_second_attempt_are_read() -> None:
    seen = pick(r1().session("R1", 1))

    assert (seen["REFUSED"], seen["ACCEPTED"]) == ((1,), (1,))
    assert seen["REFUSAL_S"] == (0.58,)
    assert seen["RESUMED_S"] == (2.15,)
    assert seen["ACCEPTANCE_S"] == (0.55,)
    assert seen["ANNOUNCED_S"] == (0.64,)
    assert seen["RESULT_AGE_S"] == (4.01,)
    assert (seen["BOOKINGS"], seen["CONSISTENT"], seen["REISSUED"]) == ((1,), (1,), (0,))


def test_a_refusal_by_another_code_is_another_refusal() -> None:
    made = Stream(Loss.FREEZE).begin().say(5.0, "mark", name="freeze").attempt(7.0, "h1", 0.6, refused=1011)
    made.attempt(8.0, "h1", 0.6, refused=1007).attempt(9.0, "h1", 0.1, refused=429)

    assert pick(made.end(10.0).session("N1"))["REFUSED"] == (1,)


def test_a_restored_model_that_is_still_booking_is_timed_from_the_commit() -> None:
    said = "I'm booking the 3 pm slot tomorrow for you now."
    late = br1(audio_s=0.9).say(14.0, "model_said", text=said)
    early = br1(audio_s=0.9).without("committed").say(12.0, "committed").say(14.0, "model_said", text=said)
    knows = br1(audio_s=0.9).say(14.0, "model_said", text="Your slot is booked.")

    assert pick(late.session("BR1-no-note"))["STILL_BOOKING_S"] == (3.57,)
    assert pick(early.session("BR1-no-note"))["STILL_BOOKING_S"] == ()
    assert pick(knows.session("BR1-no-note"))["STILL_BOOKING_S"] == ()


def test_who_gives_up_at_the_limit_was_refused_by_it_last() -> None:
    made = Stream(Loss.FREEZE).begin().say(5.0, "mark", name="freeze").attempt(7.0, None, 0.6, refused=1011)
    made.say(8.0, "given_up", reason="30 attempts came to nothing").attempt(9.0, None, 0.6, refused=1011)
    made.assistant[-1]["reason"] = "RESOURCE_EXHAUSTED: Maximum concurrent sessions exceeded."
    seen = pick(made.say(10.0, "given_up", reason="30 attempts came to nothing").end(10.1).session("limit"))

    assert (seen["GAVE_UP"], seen["GAVE_UP_AT_LIMIT"]) == ((2,), (1,))


def test_a_recovery_s_times_count_from_the_loss_or_from_what_they_follow() -> None:
    seen = pick(br1().session("BR1"))

    assert seen["DETECTED_S"] == (1.8,)
    assert seen["WINDOW_S"] == (3.58,)
    assert seen["FALLBACK_S"] == (5.66,)
    assert seen["NEW_SETUP_S"] == (0.28,)
    assert seen["SPEAKS_AFTER_S"] == (1.0,)
    assert seen["FIRST_AUDIO_S"] == (6.67,)
    assert seen["REFUSED"] == (4,), "the new session is no attempt to resume"


def test_a_call_issued_again_counts_by_its_id_whatever_the_client_calls_it() -> None:
    seen = pick(br1(reissued=True).session("BR1"))

    assert seen["REISSUED"] == (1,)
    assert seen["REISSUED_AFTER_S"] == (0.68,)


def test_one_call_delivered_twice_is_not_issued_again() -> None:
    assert pick(br1().call(11.0).session("BR1"))["REISSUED"] == (0,)


def test_in_a_lapse_silence_is_session_time_and_the_back_off_has_the_kernel_s_factor() -> None:
    seen = pick(b1().session("B1"))

    assert seen["SILENT_UNTIL_S"] == pytest.approx((479.2,))
    assert seen["LAST_COPY_S"] == pytest.approx((479.2 + 117.1,))
    assert seen["COPIES"] == (11,)
    assert seen["REFUSED"] == (90,)


def test_a_server_that_sends_into_the_hole_at_once_has_its_copies_counted_from_there() -> None:
    made = Stream(Loss.PACKET_LOSS, OnTheWire(1005.0, 0.1, 11, 0.1 + 115.0 / 30), 30.0).begin()
    made.say(5.0, "mark", name="cut").end(20.0)

    assert pick(made.session("B2"))["LAST_COPY_S"] == (115.1,)


def test_each_loss_is_an_episode_of_its_own() -> None:
    made = Stream(Loss.FREEZE).begin()
    for begun in (5.0, 20.0):
        made.say(begun, "mark", name="freeze").say(begun + 1.7, "lost", attempt=1, silent_s=2.0, by="silence")
        made.attempt(begun + 5.3, None, 0.3).say(begun + 5.6, "restored", attempt=2, note=True, jobs=1)
        made.say(begun + 6.5, "audio_first", attempt=2)
    seen = pick(made.end(40.0).session("lost-again"))

    assert seen["DETECTED_S"] == (1.7, 1.7)
    assert seen["FIRST_AUDIO_S"] == (6.5, 6.5)


def test_a_frozen_server_s_close_is_dated_by_its_own_word() -> None:
    made = Stream(Loss.FREEZE).begin().say(5.0, "mark", name="freeze")
    made.say(7.0, "lapse", since=1007.0, factor=10.0).serve(54.7, "closed", connection=1, because="silence", code=1011)

    assert pick(made.end(90.0).session("P4"))["SILENT_UNTIL_S"] == (479.0,)


def test_what_comes_with_the_path_is_a_close_code_or_an_abnormal_end() -> None:
    for code, shown in ((1011, 1011), (None, 1006)):
        made = Stream(Loss.PACKET_LOSS).begin().say(5.0, "mark", name="cut").say(60.0, "mark", name="heal")
        made.say(61.0, "closed", attempt=1, code=code)
        assert pick(made.end(70.0).session("healed"))["DEAD_CODE"] == (shown,)


def test_the_echo_of_a_close_is_that_of_its_own_connection() -> None:
    made = Stream(Loss.PACKET_LOSS).begin().say(80.0, "close_old", attempt=1, code=1000)
    made.say(80.005, "closed", attempt=7, code=1000).say(80.014, "closed", attempt=1, code=1000)

    assert pick(made.end(90.0).session("B3"))["CLOSE_ECHO_S"] == (0.014,)


def test_an_answer_behind_the_commit_says_by_how_much() -> None:
    made = r1().without("answer").answered(12.9, "I'm booking it.", consistent=False, commit_age_s=2.95)

    seen = pick(made.session("R2"))
    assert (seen["BEHIND_S"], seen["CONSISTENT"], seen["ANSWERED"]) == ((2.95,), (0,), (1,))


def test_what_never_happened_has_no_time_and_no_count_is_left_out() -> None:
    values = read(Stream(Loss.NONE).say(0.0, "done", ok=True).observed)

    assert not [quantity for quantity, seen in values.items() if quantity.timed and seen]
    assert values[Quantity.BOOKINGS] == (), "nobody counted them"
    assert values[Quantity.REFUSED] == (0,)
    assert set(values) == set(Quantity)


def test_events_may_come_out_of_order() -> None:
    made = br1()
    made.assistant.reverse()

    assert pick(made.session("BR1"))["FIRST_AUDIO_S"] == (6.67,)
