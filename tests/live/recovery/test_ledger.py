"""Calls run once, results go out once, and one meaning is one job, across connections and sessions."""

from typing import Any

import pytest

from lab.live.protocol.messages import FunctionCall, FunctionResponse
from lab.live.recovery.ledger import Job, Ledger, Progress

NOW = 100.0
BOOKED = {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}


def call(id_: str | None, slot: str = "tomorrow 3pm") -> FunctionCall:
    return FunctionCall(id_, "book_slot", {"slot": slot})


def answer(id_: str | None, **more: Any) -> FunctionResponse:
    return FunctionResponse(id_, "book_slot", {**BOOKED, **more})


def begun(ledger: Ledger, id_: str | None, slot: str = "tomorrow 3pm", *, now: float = NOW) -> Job:
    job = ledger.called(call(id_, slot), now=now)
    assert job is not None
    return job


def test_a_call_begins_a_job_and_its_result_is_sent_once() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    assert (job.number, job.call_id, job.began_at, job.progress) == (1, "c1", NOW, Progress.PENDING)
    assert ledger.due() == ()

    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert ledger.due() == (answer("c1"),)
    assert ledger.take(now=NOW + 4) == (answer("c1"),)
    assert ledger.take(now=NOW + 5) == ()


def test_the_same_id_twice_runs_once_and_is_answered_once() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    assert ledger.called(call("c1"), now=NOW + 1) is None

    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert len(ledger.take(now=NOW + 4)) == 1
    assert ledger.called(call("c1"), now=NOW + 5) is None
    assert ledger.take(now=NOW + 5) == ()


def test_another_id_with_the_same_meaning_is_answered_from_the_job() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW + 4)
    ledger.take(now=NOW + 4)

    assert ledger.called(call("c2", "tomorrow at 3pm"), now=NOW + 5) is None
    assert ledger.take(now=NOW + 5) == (answer("c2", duplicate_of="c1"),)
    assert len(ledger.jobs) == 1


def test_a_duplicate_of_a_pending_job_is_answered_when_it_finishes() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    ledger.called(call("c2"), now=NOW + 1)
    assert ledger.due() == ()

    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert ledger.due() == (answer("c1"), answer("c2", duplicate_of="c1"))


def test_another_slot_is_another_job() -> None:
    ledger = Ledger()

    assert begun(ledger, "c1").number == 1
    assert begun(ledger, "c2", "tomorrow 4pm").number == 2


@pytest.mark.parametrize(("after_s", "same"), [(600.0, True), (600.1, False)])
def test_a_finished_job_answers_for_600_s_after_its_end(after_s: float, same: bool) -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW + 4)

    assert (ledger.called(call("c2"), now=NOW + 4 + after_s) is None) is same


def test_a_job_that_never_ends_answers_for_ever() -> None:
    ledger = Ledger()
    begun(ledger, "c1")

    assert ledger.called(call("c2"), now=NOW + 10_000) is None


def test_what_failed_may_be_tried_again() -> None:
    ledger = Ledger()
    failed = ledger.finished(begun(ledger, "c1").number, {"status": "failed"}, now=NOW + 4, failed=True)

    assert failed.progress is Progress.FAILED
    assert begun(ledger, "c2", now=NOW + 5).number == 2
    assert [response.id for response in ledger.take(now=NOW + 5)] == ["c1"]


def test_only_the_first_end_of_a_job_counts() -> None:
    ledger = Ledger()
    number = begun(ledger, "c1").number
    ledger.finished(number, BOOKED, now=NOW + 4)

    assert ledger.finished(number, {"status": "failed"}, now=NOW + 5, failed=True).response == BOOKED
    with pytest.raises(KeyError):
        ledger.finished(7, BOOKED, now=NOW)


def test_without_deduplication_a_new_id_is_a_second_booking() -> None:
    ledger = Ledger(dedupe=False)
    begun(ledger, "c1")
    second = begun(ledger, "c2")

    assert second.number == 2
    ledger.finished(2, BOOKED, now=NOW + 4)
    assert ledger.take(now=NOW + 4) == (answer("c2"),), "and nothing tells that it is one"


def test_calls_without_an_id_are_told_apart_by_their_meaning_alone() -> None:
    ledger = Ledger()
    job = begun(ledger, None)
    assert ledger.called(call(None), now=NOW) is None

    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert ledger.take(now=NOW + 4) == (answer(None), answer(None))


def test_a_cancelled_call_gets_no_response_and_its_job_answers_whoever_asks_again() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    ledger.cancelled(["c1", "c9"])
    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert ledger.due() == ()
    assert [job.call_id for job in ledger.updates()] == ["c1"], "else the model goes on believing that it stopped"

    assert ledger.called(call("c2"), now=NOW + 5) is None
    assert ledger.updates() == ()
    assert ledger.take(now=NOW + 5) == (answer("c2", duplicate_of="c1"),)


# Losses.


def test_a_result_that_comes_in_a_gap_waits_for_the_resumed_session() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    ledger.lost()
    ledger.finished(job.number, BOOKED, now=NOW + 4)
    assert ledger.take(now=NOW + 4) == ()

    ledger.adopted(resumed=True)
    assert ledger.take(now=NOW + 5) == (answer("c1"),)


def test_a_result_that_surely_arrived_is_not_sent_again() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW)
    ledger.take(now=NOW + 1)
    ledger.heard(NOW + 1.2)
    ledger.lost()
    ledger.adopted(resumed=True)

    assert ledger.take(now=NOW + 5) == ()


def test_a_result_that_went_out_into_the_hole_is_due_again() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW)
    ledger.take(now=NOW + 1)
    ledger.heard(NOW + 0.9)
    ledger.lost()
    ledger.adopted(resumed=True)

    assert ledger.take(now=NOW + 5) == (answer("c1"),)


def test_an_id_that_is_asked_again_after_a_loss_is_answered_again_but_runs_once() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW)
    ledger.take(now=NOW + 1)
    ledger.heard(NOW + 2)
    ledger.lost()
    ledger.adopted(resumed=True)

    assert ledger.called(call("c1"), now=NOW + 5) is None
    assert ledger.take(now=NOW + 5) == (answer("c1"),)
    assert ledger.called(call("c1"), now=NOW + 6) is None
    assert ledger.take(now=NOW + 6) == ()


def test_a_call_that_is_repeated_while_its_result_is_under_way_is_not_asked_anew() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW)
    ledger.lost()
    ledger.adopted(resumed=True)
    assert len(ledger.take(now=NOW + 5)) == 1

    assert ledger.called(call("c1"), now=NOW + 5.01) is None
    assert ledger.due() == ()


def test_a_new_session_never_gets_a_result_for_an_old_id() -> None:
    ledger = Ledger()
    job = begun(ledger, "c1")
    ledger.lost()
    ledger.adopted(resumed=False)
    ledger.finished(job.number, BOOKED, now=NOW + 8)

    assert ledger.due() == ()
    assert ledger.called(call("c7"), now=NOW + 9) is None
    assert ledger.take(now=NOW + 9) == (answer("c7", duplicate_of="c1"),)


# The note.


def test_a_note_names_what_is_pending_or_ended_within_300_s() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1", "monday 9am").number, BOOKED, now=NOW)
    ledger.finished(begun(ledger, "c2", "monday 10am").number, BOOKED, now=NOW + 0.5)
    begun(ledger, "c3", "monday 11am")

    assert [job.call_id for job in ledger.effects(now=NOW + 300.2)] == ["c2", "c3"]
    assert [job.call_id for job in ledger.effects(now=NOW + 300)] == ["c1", "c2", "c3"]


def restored() -> tuple[Ledger, Job]:
    """A new session that was told of one pending job."""
    ledger = Ledger()
    job = begun(ledger, "c1")
    ledger.lost()
    ledger.adopted(resumed=False)
    ledger.noted(ledger.effects(now=NOW + 5))
    return ledger, job


def test_a_job_that_ends_after_the_note_is_told_once() -> None:
    ledger, job = restored()
    assert ledger.updates() == ()

    done = ledger.finished(job.number, BOOKED, now=NOW + 8)
    assert ledger.updates() == (done,)
    ledger.told([done], now=NOW + 9)
    assert ledger.updates() == ()


def test_an_update_that_may_not_have_arrived_is_told_again() -> None:
    ledger, job = restored()
    done = ledger.finished(job.number, BOOKED, now=NOW + 8)
    ledger.told([done], now=NOW + 9)
    ledger.lost()
    assert ledger.updates() == (), "nobody listens"
    ledger.adopted(resumed=True)

    assert ledger.updates() == (done,)
    ledger.told([done], now=NOW + 12)
    ledger.heard(NOW + 12)
    ledger.lost()
    ledger.adopted(resumed=True)
    assert ledger.updates() == ()


def test_what_a_note_called_finished_needs_no_update() -> None:
    ledger = Ledger()
    ledger.finished(begun(ledger, "c1").number, BOOKED, now=NOW)
    ledger.lost()
    ledger.adopted(resumed=False)
    ledger.noted(ledger.effects(now=NOW + 5))
    ledger.told(ledger.jobs, now=NOW + 6)

    assert ledger.updates() == ()


def test_a_reissued_call_makes_the_update_needless() -> None:
    ledger, job = restored()
    ledger.called(call("c2"), now=NOW + 6)
    ledger.finished(job.number, BOOKED, now=NOW + 8)

    assert ledger.updates() == ()
    assert ledger.take(now=NOW + 8) == (answer("c2", duplicate_of="c1"),)


def test_a_reissued_call_that_was_cancelled_does_not() -> None:
    ledger, job = restored()
    ledger.called(call("c2"), now=NOW + 6)
    ledger.cancelled(["c2"])

    assert ledger.updates() == ()
    assert ledger.finished(job.number, BOOKED, now=NOW + 8) in ledger.updates()


def test_another_new_session_is_promised_only_what_its_own_note_says() -> None:
    ledger, job = restored()
    ledger.lost()
    ledger.adopted(resumed=False)
    ledger.finished(job.number, BOOKED, now=NOW + 8)
    ledger.noted(ledger.effects(now=NOW + 9))

    assert ledger.updates() == ()
