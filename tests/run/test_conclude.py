"""From findings to the record: what stands in it, and what it must never claim."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.core.fault import Fault
from lab.core.flow import Direction
from lab.core.hole import Passage
from lab.core.prediction import State
from lab.core.segment import Flag
from lab.core.uplink import Uplink
from lab.report.record import Activity, Cause, NoticedBy, Outcome
from lab.report.timeline import TimelineWriter, read_timeline
from lab.run.conclude import Known, conclude, crossed_summary, unfinished, write_timeline
from lab.run.findings import Findings
from lab.run.noticing import Noticing
from lab.run.spec import Program, RunSpec
from lab.testbed.ports import CutReceipt
from tests.run.cases import (
    COPIES_S,
    CUT,
    DEATH_S,
    SENT_AT,
    WALL,
    copies,
    made_client,
    made_findings,
    made_forecast,
    made_outside,
    made_server,
    nothing,
    quiet,
    segment,
)
from tests.run.fakes import FLOW, sample

KNOWN = Known(
    spec=RunSpec(Program(("srv",)), Program(("cli",)), 5000),
    backend="netns",
    versions={"lab": "0.1", "kernel": "6.18", "python": "3.11", "scapy": "2.6"},
    hz=250,
    started_at=WALL,
    settings={"client": {"net.ipv4.tcp_retries2": "6"}},
)
FORECASTS = {"client": made_forecast(), "server": made_forecast()}
READY = replace(KNOWN, flow=FLOW, fault=Fault(FLOW), forecasts=FORECASTS)


def test_times_count_from_the_cut() -> None:
    record = conclude(READY, made_findings())
    client = record.observation.client

    assert record.outcome is Outcome.CONFIRMED
    assert record.reason is None
    assert client.first_lost_s == pytest.approx(SENT_AT - CUT.done_at)
    assert client.gave_up_s == pytest.approx(SENT_AT + DEATH_S - CUT.done_at)
    assert client.copy_times_s == pytest.approx([SENT_AT + at - CUT.done_at for at in COPIES_S])
    assert (client.cause, client.errno, client.noticed_by) == (Cause.RETRIES2, "ETIMEDOUT", NoticedBy.ERROR)
    assert record.fault.cut_at == pytest.approx(WALL + CUT.done_at - 98.5)
    assert record.horizon_s == pytest.approx(107.2 - CUT.done_at)


def test_a_confirmed_run_says_that_the_program_closed_first() -> None:
    closed = replace(nothing(), closed_at=CUT.done_at + 3.358)
    client = made_client(fate=closed, program_error_at=None, noticing=Noticing(None, None, None), seen_until=107.1)
    record = conclude(READY, made_findings(client=client))

    assert record.outcome is Outcome.CONFIRMED
    said = "the client's program closed the flow at 3.358 s, before its kernel would have given up"
    assert said in (record.reason or "")


def test_the_window_that_applied_counts_from_the_first_loss() -> None:
    record = conclude(READY, made_findings())
    applied = record.prediction.client

    assert applied.applied is Activity.SENDING
    assert applied.branch is not None
    assert applied.branch.window_s is not None
    assert applied.branch.window_s[0] == pytest.approx((made_client().window or (0, 0))[0] - CUT.done_at)
    assert record.prediction.server.applied is Activity.IDLE
    assert record.real_world is not None


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (made_findings(icmp=1), Outcome.INVALID),
        (made_findings(client=made_client(fate=nothing(), program_error_at=None, seen_until=107.1)), Outcome.REFUTED),
    ],
)
def test_what_is_not_confirmed_says_why(found: Findings, outcome: Outcome) -> None:
    record = conclude(READY, found)

    assert record.outcome is outcome
    assert record.reason is not None
    assert [check.name for check in record.checks if not check.ok] == [record.reason.split(":")[0]]


def test_an_end_that_learned_nothing_was_never_told() -> None:
    record = conclude(READY, made_findings())

    assert (record.observation.client.never_told, record.observation.server.never_told) == (False, True)


def test_after_a_heal_an_end_with_nothing_to_lose_had_nothing_to_be_told() -> None:
    healed = made_findings(healed=CutReceipt(102.0, 102.0001))

    assert conclude(READY, healed).observation.server.never_told is False


def test_an_end_that_a_heal_did_not_help_is_still_not_told() -> None:
    stuck = made_client(
        traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:4])),
        fate=nothing(),
        noticing=Noticing(None, None, None),
        program_error_at=None,
    )
    healed = made_findings(client=stuck, healed=CutReceipt(102.0, 102.0001))

    assert conclude(READY, healed).observation.client.never_told is True


def test_a_program_that_closed_was_not_left_untold_and_its_kernel_did_not_give_up() -> None:
    noticed = made_client(
        fate=replace(nothing(), closed_at=102.0), noticing=Noticing(None, None, None), program_error_at=None
    )
    client = conclude(READY, made_findings(client=noticed)).observation.client

    assert client.closed_s == pytest.approx(102.0 - CUT.done_at)
    assert (client.gave_up_s, client.cause, client.never_told) == (None, Cause.NONE, False)


def test_a_note_is_in_the_record_without_contradicting_its_outcome() -> None:
    lived = made_client(
        traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:5])),
        fate=nothing(),
        noticing=Noticing(None, None, None),
        program_error_at=None,
        seen_until=103.0,
    )
    record = conclude(READY, made_findings(client=lived, server=made_server(seen_until=103.0), watched_until=103.0))
    note = next(check for check in record.checks if check.name == "client-horizon")

    assert record.outcome is Outcome.CONFIRMED
    assert note.ok
    assert "confirmed up to 3.00 s only" in note.detail
    assert record.ends_unresolved == ("client", "server")


def test_a_run_that_knows_nothing_yet_has_an_invalid_record_already() -> None:
    record = unfinished(KNOWN, reason="the run did not come to its end", interrupted=True)

    assert (record.outcome, record.interrupted) == (Outcome.INVALID, True)
    assert (record.flow.client, record.prediction.client.sending, record.fault.cut_at) == (None, None, None)
    assert record.versions.libraries == {"scapy": "2.6"}


def test_before_the_cut_both_branches_stand_and_none_applies() -> None:
    record = unfinished(READY, reason="interrupted")

    assert record.prediction.client.applied is None
    assert record.prediction.client.sending is not None
    assert record.prediction.client.sending.cause is Cause.RETRIES2
    assert record.flow.server == str(FLOW.server)


def test_a_closed_window_has_something_to_lose_although_nothing_was_sent() -> None:
    waiting = made_forecast()
    zero = replace(waiting, sending_situation=replace(waiting.sending_situation, state=State.ZERO_WINDOW))

    assert made_server(forecast=zero).sends
    assert not made_server().sends


def test_what_this_kernel_cannot_do_is_unsupported_and_not_invalid() -> None:
    record = unfinished(KNOWN, reason="this kernel has no tcp_rto_max_ms", unsupported=True)

    assert record.outcome is Outcome.UNSUPPORTED
    assert record.reason == "this kernel has no tcp_rto_max_ms"


def test_what_crossed_is_counted_by_what_it_says() -> None:
    crossed = (segment(101.0), segment(102.0, Flag.RST), segment(103.0, Flag.ACK | Flag.FIN))
    passages = [Passage(direction, 3, 3, (), crossed, ()) for direction in Direction]

    assert crossed_summary(passages) == {"segments": 6, "rst": 2, "fin": 2}


FAR = Uplink("staging.example.com", FLOW.server.port, FLOW.server.address)
OUTSIDE = replace(
    READY,
    spec=RunSpec(None, Program(("cli",)), FLOW.server.port, uplink=FAR),
    backend="docker",
    forecasts={"client": made_forecast()},
)


def test_of_an_outside_server_the_record_has_what_the_wire_showed_and_nothing_else() -> None:
    record = conclude(OUTSIDE, made_outside())
    seen = record.observation.server

    assert record.outcome is Outcome.CONFIRMED
    assert record.uplink is not None
    assert (record.uplink.host, record.uplink.translated) == ("staging.example.com", "203.0.113.1:40000")
    assert seen.copies == 1
    assert seen.first_lost_s == pytest.approx(SENT_AT + 0.2 - CUT.done_at)
    assert seen.last_copy_s == pytest.approx(SENT_AT + 0.6 - CUT.done_at)
    assert (seen.gave_up_s, seen.cause, seen.errno, seen.noticed_s, seen.never_told) == (None,) * 5
    assert record.prediction.server.applied is None
    assert record.real_world is not None
    assert record.real_world.server is None


def test_an_unfinished_record_names_the_uplink_too() -> None:
    record = unfinished(OUTSIDE, reason="the run was interrupted")

    assert record.uplink is not None
    assert (record.uplink.address, record.uplink.translated) == (FLOW.server.address, None)
    assert unfinished(READY, reason="x").uplink is None


def test_the_timeline_has_the_last_look_before_it_begins_and_all_after(tmp_path: Path) -> None:
    looks = tuple(sample(at=CUT.done_at + at) for at in (-9.0, -5.0, 1.0))
    found = made_findings(client=made_client(samples=looks), server=made_server(samples=()))

    with TimelineWriter(tmp_path / "timeline.jsonl") as timeline:
        timeline.anchor(CUT.done_at)
        write_timeline(timeline, found, {}, CUT.done_at - 2.0)

    entries = read_timeline(tmp_path / "timeline.jsonl").entries
    assert [round(t) for t, one in entries if one.source == "client"] == [-5, 1]
