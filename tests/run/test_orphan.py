"""A socket that its program closed in the dark: what was said of it, what became of it, and whether the two agree."""

from dataclasses import replace
from typing import Any

import pytest

from lab.core.fault import Cut, Fault, Placement
from lab.core.verdict import Kind
from lab.report.record import Activity, Cause, NoticedBy, Outcome, Record
from lab.run.conclude import conclude
from lab.run.fate import KernelFate
from lab.run.findings import EndFinding, Findings
from lab.run.noticing import Noticing
from lab.run.orphan import Orphan, after_close, read_orphan
from lab.run.predictions import predictions
from lab.run.proofs import proofs
from lab.testbed.ports import CutReceipt, SocketTrack
from tests.run.cases import (
    COPIES_S,
    CUT,
    SENT_AT,
    copies,
    copy_at,
    made_client,
    made_findings,
    made_forecast,
    made_server,
    quiet,
    watched,
)
from tests.run.fakes import FLOW
from tests.run.test_conclude import READY

EARLY, LATE = 1.0, 4.4
"""Seconds from the send: before an orphan's bound, and after three more copies than it would have got."""

GONE_S = {EARLY: 2.698, LATE: 4.746}
"""By the rule: the first expiry past the bound, and the first one after a close that came later."""

SENT = {EARLY: COPIES_S[:4], LATE: COPIES_S[:6]}


def closed(closed_s: float = EARLY, gone_s: float | None = None, **changes: Any) -> EndFinding:
    """A client whose program closes so long after its send."""
    closed_at, gone_at = SENT_AT + closed_s, SENT_AT + (GONE_S[closed_s] if gone_s is None else gone_s)
    traffic = quiet(lost_at=SENT_AT, copies=copies(SENT[closed_s]))
    fate = KernelFate(None, 0.0, None, closed_at, held_at=closed_at - 0.2)
    dead = replace(fate, gone_at=gone_at, within_s=0.003, cause="orphan-retries")
    end = made_client(
        traffic=traffic,
        fate=fate,
        orphan=read_orphan(dead, SocketTrack((), gone_at, 0.003), watched(), made_forecast(), traffic),
        noticing=Noticing(closed_at, "close", None),
        program_error_at=None,
        counted={},
        counters={},
    )
    return replace(end, **changes)


def run_of(end: EndFinding, **changes: Any) -> Findings:
    return made_findings(client=end, **changes)


def failed(end: EndFinding, **changes: Any) -> list[str]:
    found = run_of(end, **changes)
    return [c.name for c in (*proofs(found), *predictions(found)) if not c.ok and c.kind is not Kind.NOTE]


def orphan_of(end: EndFinding, **changes: Any) -> Orphan:
    assert end.orphan is not None
    return replace(end.orphan, **changes)


def record_of(end: EndFinding, **changes: Any) -> Record:
    return conclude(READY, run_of(end, **changes))


@pytest.mark.parametrize("closed_s", [EARLY, LATE])
def test_an_orphans_end_is_predicted_before_the_cut_whenever_its_program_closes(closed_s: float) -> None:
    end = closed(closed_s)

    assert failed(end) == []
    assert {"client-copies", "client-orphan", "client-orphan-cause", "client-orphan-copies", "client-orphan-rule"} <= {
        check.name for check in predictions(run_of(end))
    }


@pytest.mark.parametrize("closed_s", [EARLY, LATE])
def test_an_orphan_that_goes_an_expiry_later_refutes(closed_s: float) -> None:
    assert {"client-orphan", "client-orphan-rule"} <= set(failed(closed(closed_s, gone_s=GONE_S[closed_s] + 1.5)))


def all_late_but_the_probe(end: EndFinding, late_s: float) -> EndFinding:
    """Its first time-out came so much too late, and all that follows with it."""
    sent = [c.segment.time_s - SENT_AT for c in end.traffic.copies]
    later = copies((sent[0], *[at + late_s for at in sent[1:]]))
    orphan = orphan_of(end)
    assert orphan.gone_at is not None
    gone = replace(orphan, gone_at=orphan.gone_at + late_s)
    return replace(end, traffic=replace(end.traffic, copies=later), orphan=gone)


@pytest.mark.parametrize("closed_s", [EARLY, LATE])
def test_a_close_after_the_first_copies_excuses_no_late_time_out(closed_s: float) -> None:
    late = all_late_but_the_probe(closed(closed_s), 0.02)

    assert "client-orphan-rule" in failed(late)


def test_a_fin_before_the_first_copy_moves_it() -> None:
    """A close is a write: it sets the timer of the probe anew."""
    end = closed(fate=KernelFate(None, 0.0, None, SENT_AT + 0.1))
    moved = replace(end.traffic, copies=copies(tuple(at + 0.1 for at in SENT[EARLY])), ended_at=SENT_AT + 0.1)
    gone = orphan_of(end, closed_at=SENT_AT + 0.1, gone_at=SENT_AT + GONE_S[EARLY] + 0.1)

    assert "client-orphan-rule" not in failed(replace(end, traffic=moved, orphan=gone))


def test_an_earlier_shutdown_is_what_moved_the_first_copy() -> None:
    end = closed()
    moved = replace(end.traffic, copies=copies(tuple(at + 0.1 for at in SENT[EARLY])), ended_at=SENT_AT + 0.1)
    gone = orphan_of(end, gone_at=SENT_AT + GONE_S[EARLY] + 0.1)

    assert "client-orphan-rule" not in failed(replace(end, traffic=moved, orphan=gone))


def test_an_orphan_that_ends_for_another_reason_refutes() -> None:
    assert failed(closed(orphan=orphan_of(closed(), cause="retries2"))) == ["client-orphan-cause"]


def test_an_orphan_that_sends_more_copies_than_it_has_refutes() -> None:
    late = closed(LATE)
    more = replace(late, orphan=orphan_of(late, copies=(copy_at(SENT_AT + 4.5),)))

    assert "client-orphan-copies" in failed(more)


def test_an_orphan_that_outlives_its_window_refutes() -> None:
    assert "client-orphan" in failed(closed(orphan=orphan_of(closed(), gone_at=None), seen_until=107.1))


def test_an_orphan_that_was_not_watched_to_its_end_is_noted() -> None:
    end = closed(orphan=orphan_of(closed(), gone_at=None), seen_until=102.0)
    found = run_of(end, server=made_server(seen_until=102.0), watched_until=102.0)

    assert [c.name for c in predictions(found) if not c.ok] == ["client-orphan-horizon"]
    assert failed(end, server=made_server(seen_until=102.0), watched_until=102.0) == []


def test_nobody_can_say_that_an_orphan_is_there_who_did_not_look() -> None:
    end = closed(orphan=orphan_of(closed(), gone_at=None), seen_until=101.0)

    assert "client-watched" in failed(end, server=made_server(seen_until=102.5), watched_until=102.5)


def test_a_loosely_dated_end_proves_nothing_where_the_verdict_hangs_on_it() -> None:
    orphan = orphan_of(closed(), within_s=0.3)

    assert "client-orphan-death-dated" in failed(closed(orphan=orphan))


@pytest.mark.parametrize("number", [0, 4])
def test_copies_that_were_due_before_a_close_must_have_left_and_no_others(number: int) -> None:
    sent = copies((*COPIES_S[:number], *[at for at in COPIES_S[:4] if at > EARLY]))
    if number:
        sent = (*copies(COPIES_S[:3]), copy_at(SENT_AT + 0.9), copy_at(SENT_AT + 0.95))

    assert "client-copies" in failed(closed(traffic=quiet(lost_at=SENT_AT, copies=sent)))


@pytest.mark.parametrize(("sent", "wrong"), [(0, ["client-copies"]), (3, [])])
def test_a_heal_after_the_close_excuses_no_copy_that_was_due_before_it(sent: int, wrong: list[str]) -> None:
    healed = CutReceipt(SENT_AT + 1.5, SENT_AT + 1.5001)
    end = closed(traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:sent])), orphan=None)

    assert [name for name in failed(end, healed=healed) if name == "client-copies"] == wrong


def test_a_close_moves_nothing_before_the_bound_and_the_next_expiry_after_it() -> None:
    made = made_forecast()
    early, late = (after_close(made, copies(COPIES_S[:sent])) for sent in (2, 6))

    assert made.closing is not None
    assert early is not None
    assert late is not None
    assert (early.window_s, early.copies) == (made.closing.window_s, (1, 2))
    assert (late.window_s, late.copies) == (made.sending.copy_times[6].window_s, (0, 0))


def test_a_probe_that_carried_new_data_is_an_expiry_all_the_same() -> None:
    made = made_forecast()
    late = after_close(made, tuple(copy_at(SENT_AT + at) for at in COPIES_S[1:6]))

    assert late is not None
    assert late.window_s == made.sending.copy_times[6].window_s


def test_without_a_branch_nothing_is_said() -> None:
    assert after_close(replace(made_forecast(), closing=None), ()) is None


def reading(gone_at: float | None = 102.75, **changes: Any) -> Orphan:
    fate = KernelFate(gone_at, 0.003, "orphan-retries" if gone_at else None, SENT_AT + EARLY)
    traffic = quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:4]))
    return read_orphan(fate, SocketTrack((), gone_at, 0.003), watched(**changes), made_forecast(), traffic)


def test_copies_after_the_close_are_the_orphans() -> None:
    assert [round(c.segment.time_s - SENT_AT, 3) for c in reading().copies] == [1.674]


@pytest.mark.parametrize(
    "fault", [Fault(FLOW, Cut.RETURN), Fault(FLOW, Cut.FORWARD), Fault(FLOW, placement=Placement.OWN_OUTPUT)]
)
def test_on_a_path_that_is_dark_in_another_way_no_orphans_end_was_predicted(fault: Fault) -> None:
    assert reading().predicted is not None
    assert reading(fault=fault).predicted is None
    assert failed(closed(orphan=reading(gone_at=106.0, fault=fault))) == []


@pytest.mark.parametrize(("healed_at", "said"), [(101.5, False), (102.74, False), (102.76, True), (104.0, True)])
def test_a_heal_before_its_end_takes_the_prediction_back(healed_at: float, said: bool) -> None:
    healed = CutReceipt(healed_at, healed_at + 0.0001)

    assert (reading(healed=healed).predicted is not None) is said


def test_an_orphan_that_no_timer_ended_is_gone_all_the_same() -> None:
    """Its FIN was acknowledged after a heal, and the other end's arrived."""
    fate = KernelFate(None, 0.0, None, SENT_AT + EARLY)
    orphan = read_orphan(fate, SocketTrack((), 103.0, 0.004), watched(), made_forecast(), quiet(lost_at=SENT_AT))

    assert (orphan.gone_at, orphan.within_s, orphan.cause) == (103.0, 0.004, None)


def test_the_record_parts_the_programs_copies_from_the_orphans() -> None:
    record = record_of(closed())
    client, said = record.observation.client, record.prediction.client

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (client.copies, client.copies_until_closed) == (4, 3)
    assert (client.gave_up_s, client.cause, client.noticed_by) == (None, Cause.NONE, NoticedBy.CLOSE)
    assert client.orphan is not None
    assert (client.orphan.copies, client.orphan.cause) == (1, Cause.ORPHAN_RETRIES)
    assert client.orphan.gone_s == pytest.approx(SENT_AT + GONE_S[EARLY] - CUT.done_at)
    assert (client.held_s, client.closed_s) == pytest.approx((0.8499, 1.0499))
    assert said.closing is not None
    assert said.orphan is not None
    assert said.orphan.window_s == said.closing.window_s
    assert said.orphan.copies == (0, 1)
    assert len(said.orphan.copy_windows_s) == 1


def test_of_a_close_that_came_late_the_record_has_the_next_expiry() -> None:
    said = record_of(closed(LATE)).prediction.client

    assert said.orphan is not None
    assert said.closing is not None
    assert said.orphan.window_s is not None
    assert said.closing.window_s is not None
    assert said.orphan.window_s > said.closing.window_s
    assert (said.orphan.copies, said.orphan.copy_windows_s) == ((0, 0), ())


def idle_until_closed() -> EndFinding:
    """A program that has nothing in flight when it closes: its FIN is the first thing that is lost."""
    end = closed()
    dead = KernelFate(SENT_AT + GONE_S[EARLY], 0.003, "orphan-retries", SENT_AT)
    orphan = read_orphan(dead, SocketTrack((), dead.gone_at, 0.003), watched(), made_forecast(), end.traffic)
    return replace(end, fate=replace(end.fate, closed_at=SENT_AT, held_at=None), orphan=orphan)


def test_an_end_whose_close_is_all_that_it_lost_was_idle() -> None:
    """Its kernel would never have given up, and no branch of an end that sends applied to it."""
    record = record_of(idle_until_closed())

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.prediction.client.applied is Activity.IDLE
    assert record.observation.client.copies_until_closed == 0
    assert "its kernel would never have given up" in (record.reason or "")


def test_data_that_leaves_with_the_fin_is_more_than_a_close() -> None:
    """A program that corks its last line, or Nagle's algorithm, has one segment carry both."""
    corked = idle_until_closed()
    with_data = replace(corked, traffic=replace(corked.traffic, lost_length=7))

    assert with_data.sends
    assert record_of(with_data).prediction.client.applied is Activity.SENDING


def test_an_earlier_shutdown_is_a_send_of_its_own() -> None:
    assert closed().sends
    assert not idle_until_closed().sends


def test_a_socket_that_went_with_its_close_leaves_no_orphan() -> None:
    """A program that leaves data unread, or lingers for nothing, sends a RST."""
    client = record_of(closed(orphan=None)).observation.client

    assert client.orphan is None
