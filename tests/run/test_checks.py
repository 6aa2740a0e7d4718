"""A run owes its proofs first, then its prediction; each way to fail is one failed check with its reason."""

from dataclasses import replace
from typing import Any

import pytest

from lab.core.fault import Matched
from lab.core.flow import Direction
from lab.core.socket import SocketOptions
from lab.core.timeline import ClockPair
from lab.core.verdict import Kind, Outcome, judge, why
from lab.run.checks import disturbed, judged
from lab.run.fate import KernelFate
from lab.run.findings import BystanderFinding, EndFinding, Findings
from lab.run.noticing import Noticing
from lab.run.predictions import predictions
from lab.run.proofs import proofs
from lab.testbed.ports import CutReceipt
from tests.run.cases import (
    COPIES_S,
    SENT_AT,
    WALL,
    copies,
    copy_at,
    gave_up,
    made_client,
    made_far,
    made_findings,
    made_forecast,
    made_outside,
    made_passage,
    made_server,
    nothing,
    quiet,
    segment,
    summary,
    window_of,
)


def outcome(found: Findings) -> Outcome:
    return judge([*proofs(found), *predictions(found)])


def failed(found: Findings) -> list[str]:
    return [
        check.name for check in (*proofs(found), *predictions(found)) if not check.ok and check.kind is not Kind.NOTE
    ]


def notes(found: Findings) -> list[str]:
    return [check.name for check in predictions(found) if check.kind is Kind.NOTE]


def test_a_run_by_the_book_is_confirmed() -> None:
    assert failed(made_findings()) == []
    assert outcome(made_findings()) is Outcome.CONFIRMED


FORWARD, RETURN = made_passage(Direction.FORWARD, 10), made_passage(Direction.RETURN, 1)
STEPPED = (ClockPair(WALL, 98.5), ClockPair(WALL + 8.8 + 0.02, 107.3))

UNPROVEN: dict[str, tuple[dict[str, Any], str]] = {
    "a rule that never bit": (
        {"matched": Matched(0, 1), "passages": (made_passage(Direction.FORWARD, 0), RETURN)},
        "rule-matched-forward",
    ),
    "a rule that dropped what no capture misses": ({"matched": Matched(11, 1)}, "rule-equals-capture-forward"),
    "a capture that misses what no rule dropped": ({"matched": Matched(9, 1)}, "rule-equals-capture-forward"),
    "the same the other way": ({"matched": Matched(10, 2)}, "rule-equals-capture-return"),
    "losses before the cut": (
        {"passages": (replace(FORWARD, missing=(segment(99.0), *FORWARD.missing[1:])), RETURN)},
        "rule-equals-capture-forward",
    ),
    "a segment that crossed": (
        {"passages": (replace(FORWARD, crossed=(segment(101.0),)), RETURN)},
        "nothing-crossed",
    ),
    "a segment that was lost on a way that was not cut": (
        {"passages": (FORWARD,), "open_ways": (RETURN,)},
        "nothing-else-lost",
    ),
    "a segment from nowhere on a way that was not cut": (
        {"passages": (FORWARD,), "open_ways": (replace(RETURN, missing=(), strangers=(segment(101.0),)),)},
        "no-strangers",
    ),
    "a segment that was lost after the heal": (
        {
            "healed": CutReceipt(107.0, 107.0001),
            "passages": (replace(FORWARD, missing=(*FORWARD.missing[1:], segment(107.1))), RETURN),
        },
        "nothing-else-lost",
    ),
    "a segment from nowhere": ({"passages": (FORWARD, replace(RETURN, strangers=(segment(101.0),)))}, "no-strangers"),
    "ICMP": ({"icmp": 1}, "no-icmp"),
    "a flow that was closed already": ({"ended_early": 1}, "open-at-cut"),
    "packets dropped by the capture": ({"capture": summary(dropped={"left": 0, "right": 1})}, "capture-complete"),
    "a capture that began too late": ({"capture": summary(started_at=99.5)}, "capture-complete"),
    "a capture that ended too early": ({"capture": summary(stopped_at=107.0)}, "capture-complete"),
    "a clock that was stepped": ({"capture": summary(clocks=STEPPED)}, "clocks-steady"),
    "a clock that was read once": ({"capture": summary(clocks=STEPPED[:1])}, "clocks-steady"),
    "a dead bystander": ({"bystander": BystanderFinding(alive=False, lost=0, longest_gap_s=0.2)}, "bystander-unharmed"),
    "a bystander with losses": ({"bystander": BystanderFinding(True, 1, 0.2)}, "bystander-unharmed"),
    "a bystander that was silent": ({"bystander": BystanderFinding(True, 0, 2.5)}, "bystander-unharmed"),
    "counters that disagree with the capture": (
        {"client": made_client(counters={"retransmissions": 9, "keepalive-probes": 0, "window-probes": 0})},
        "client-counters-agree",
    ),
    "counters of a kind that the capture does not show": (
        {"server": made_server(counters={"retransmissions": 0, "keepalive-probes": 1, "window-probes": 0})},
        "server-counters-agree",
    ),
    "a socket that nobody saw": ({"server": made_server(seen_until=None)}, "server-watched"),
    "a socket that was looked at too early": ({"server": made_server(seen_until=106.0)}, "server-watched"),
    "a death that two witnesses date differently": (
        {"client": made_client(program_error_at=SENT_AT + 6.7)},
        "client-witnesses-agree",
    ),
}


@pytest.mark.parametrize("case", UNPROVEN)
def test_a_run_is_invalid_with(case: str) -> None:
    changes, name = UNPROVEN[case]
    found = made_findings(**changes)

    assert failed(found) == [name]
    assert outcome(found) is Outcome.INVALID
    assert (why(proofs(found)) or "").startswith(f"{name}: ")


def test_a_death_that_is_dated_loosely_proves_nothing_where_the_verdict_hangs_on_it() -> None:
    low, high = window_of(made_client())
    straddling = made_client(fate=gave_up(high, within_s=0.1), program_error_at=None)
    inside = made_client(fate=gave_up((low + high) / 2, within_s=(high - low) / 2.05), program_error_at=None)
    assert inside.fate.within_s > 0.02

    assert "client-death-dated" in failed(made_findings(client=straddling))
    assert "client-death-dated" not in failed(made_findings(client=inside))


def test_an_end_that_never_had_a_socket_need_not_be_watched() -> None:
    unborn = made_server(seen_until=None, forecast=replace(made_forecast(), sample=None))

    assert failed(made_findings(server=unborn)) == []


def test_what_a_busy_machine_can_spoil_is_worth_repeating_and_a_missing_rule_is_not() -> None:
    spoilt = made_findings(capture=summary(dropped={"left": 3, "right": 0}))
    broken = made_findings(matched=Matched(0, 1), capture=summary(dropped={"left": 3, "right": 0}))

    assert disturbed(proofs(spoilt))
    assert not disturbed(proofs(broken))
    assert not disturbed(proofs(made_findings()))


@pytest.mark.parametrize("by_s", [-0.5, 0.5])
def test_a_death_outside_the_window_refutes(by_s: float) -> None:
    low, high = window_of(made_client())
    at = low + by_s if by_s < 0 else high + by_s
    found = made_findings(client=made_client(fate=gave_up(at), program_error_at=at), watched_until=108.0)
    found = replace(found, capture=summary(stopped_at=109.0), server=made_server(seen_until=107.9))

    assert "client-window" in failed(found)
    assert outcome(found) is Outcome.REFUTED


def test_a_death_for_another_reason_refutes() -> None:
    found = made_findings(client=made_client(fate=gave_up(cause="user-timeout")))

    assert failed(found) == ["client-cause"]
    assert outcome(found) is Outcome.REFUTED


def test_a_death_where_nothing_was_due_refutes() -> None:
    found = made_findings(server=made_server(fate=gave_up(103.0, "keepalive")))

    assert failed(found) == ["server-alive"]


def test_too_few_copies_refute_although_the_death_is_in_its_window() -> None:
    traffic = quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:-2]))
    found = made_findings(client=made_client(traffic=traffic))

    assert {"client-rule", "client-copies"} <= set(failed(found))


def test_outliving_the_window_refutes() -> None:
    found = made_findings(client=made_client(fate=nothing(), program_error_at=None, seen_until=107.15))
    _, high = window_of(found.client)

    assert found.watched_until > high
    assert failed(found) == ["client-alive"]


def short_watch(until: float = 103.0, **changes: Any) -> Findings:
    client = made_client(
        traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:5])),
        fate=nothing(),
        noticing=Noticing(None, None, None),
        program_error_at=None,
        seen_until=until,
        counted={},
        counters={},
    )
    return made_findings(client=replace(client, **changes), server=made_server(seen_until=until), watched_until=until)


def test_a_watch_that_ends_before_the_window_is_confirmed_up_to_its_horizon_and_says_so() -> None:
    assert failed(short_watch()) == []
    assert notes(short_watch()) == ["client-horizon"]


def test_at_the_horizon_the_copies_that_were_due_must_have_left() -> None:
    silent = short_watch(traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:1])))

    assert failed(silent) == ["client-copies"]


def test_a_watch_that_ends_with_the_window_has_seen_neither_end_nor_survival() -> None:
    _, high = window_of(made_client())
    found = short_watch(high + 0.001, traffic=quiet(lost_at=SENT_AT, copies=copies()))

    assert failed(found) == []
    assert notes(found) == ["client-horizon"]


def closed(at: float) -> KernelFate:
    return replace(nothing(), closed_at=at)


@pytest.mark.parametrize("share", [-1.0, 0.5])
def test_a_program_that_closes_before_the_kernel_must_give_up_refutes_nothing(share: float) -> None:
    low, high = window_of(made_client())
    found = made_findings(client=made_client(fate=closed(low + share * (high - low)), program_error_at=None))

    assert failed(found) == []
    assert any("its program closed it" in check.detail for check in predictions(found))


def test_a_program_that_closes_long_after_the_window_shows_that_the_kernel_did_not_give_up() -> None:
    _, high = window_of(made_client())
    found = made_findings(client=made_client(fate=closed(high + 0.3), program_error_at=None))

    assert failed(found) == ["client-alive"]


def healed_at(at: float, **changes: Any) -> Findings:
    return made_findings(healed=CutReceipt(at, at + 0.0001), **changes)


def recovering(heal: float, copy: float, recovered: float | None) -> Findings:
    sent = (*copies(COPIES_S[:4]), copy_at(copy))
    traffic = quiet(lost_at=SENT_AT, copies=sent, recovered_at=recovered)
    client = made_client(
        traffic=traffic, fate=nothing(), program_error_at=None, counted={}, counters={}, seen_until=107.0
    )
    return healed_at(heal, client=client)


def test_a_heal_in_time_is_followed_by_delivery_at_the_next_copy() -> None:
    copy = SENT_AT + COPIES_S[4]

    assert failed(recovering(102.0, copy, copy + 0.0003)) == []


@pytest.mark.parametrize(
    ("copy", "recovered"),
    [
        pytest.param(SENT_AT + COPIES_S[4], None, id="never"),
        pytest.param(SENT_AT + COPIES_S[4], SENT_AT + COPIES_S[4] + 0.5, id="long-after-the-copy"),
        pytest.param(SENT_AT + COPIES_S[5], SENT_AT + COPIES_S[5] + 0.001, id="a-copy-late"),
    ],
)
def test_a_recovery_that_comes_otherwise_refutes(copy: float, recovered: float | None) -> None:
    assert failed(recovering(102.0, copy, recovered)) == ["client-recovery"]


def test_a_heal_inside_the_window_may_come_before_the_end_or_after_it() -> None:
    low, high = window_of(made_client())
    middle = (low + high) / 2
    last = SENT_AT + COPIES_S[-1] + 1.02
    traffic = quiet(lost_at=SENT_AT, copies=(*copies(), copy_at(last)), recovered_at=last + 0.001)
    lived = made_client(traffic=traffic, fate=nothing(), program_error_at=None, seen_until=107.0)

    assert "client-alive" not in failed(healed_at(min(middle, last - 0.01), client=lived))
    assert failed(healed_at(high - 0.001)) == []


def test_an_idle_end_whose_keepalive_was_due_after_the_heal_lives_on() -> None:
    options = SocketOptions(keepalive=True, keepalive_idle_s=2.0, keepalive_interval_s=1.0, keepalive_count=2)
    idle = made_server(forecast=made_forecast(options))
    assert idle.window is not None
    assert idle.window[1] < 107.0

    assert "server-alive" not in failed(healed_at(101.0, server=idle))
    assert "server-alive" in failed(made_findings(server=idle)), "without a heal it had to die"


def test_a_program_that_let_go_before_the_heal_has_nothing_to_recover() -> None:
    """An application's own timeout, then the path comes back: the closed socket sends no more copies."""
    traffic = quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:4]))
    client = made_client(traffic=traffic, fate=closed(102.0), program_error_at=None, counted={}, counters={})

    assert failed(healed_at(104.0, client=client)) == []


def server_told_at_last(client: EndFinding, cause: str = "reset") -> Findings:
    """The client has ended; the path comes back; the server's next copy is answered by a RST."""
    copy = SENT_AT + COPIES_S[6]
    server = made_server(
        traffic=quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:7])),
        fate=gave_up(copy + 0.05, cause, within_s=0.05),
        program_error_at=None,
        counted={},
        counters={},
    )
    return healed_at(104.0, client=client, server=server)


def test_after_a_heal_a_peer_that_has_ended_answers_the_next_copy_with_a_reset() -> None:
    ended = made_client(fate=closed(102.0), program_error_at=None)
    alive = made_client(
        fate=nothing(), traffic=quiet(), program_error_at=None, counted={}, counters={}, seen_until=107.0
    )

    assert failed(server_told_at_last(ended)) == []
    assert failed(server_told_at_last(alive)) == ["server-recovery"]
    assert failed(server_told_at_last(ended, "retries2")) == ["server-recovery"]


def reset_by_client_at(at: float, closed_at: float | None, **changes: Any) -> Findings:
    """The path is back at 102.0; the client's program closes with something unread, so that its kernel says RST."""
    fate = nothing() if closed_at is None else closed(closed_at)
    client = made_client(fate=fate, traffic=quiet(), program_error_at=None, counted={}, counters={}, seen_until=107.0)
    server = made_server(fate=gave_up(at, "reset", within_s=0.001), program_error_at=None, **changes)
    return healed_at(102.0, client=client, server=server)


def test_after_a_heal_an_idle_end_may_be_reset_by_a_peer_whose_program_let_go() -> None:
    assert failed(reset_by_client_at(103.0, 103.0)) == []
    assert failed(reset_by_client_at(103.0, 103.4)) == [], "samples date a close up to a second late"
    assert failed(reset_by_client_at(103.0, None)) == ["server-alive"], "who should have reset it?"
    assert failed(reset_by_client_at(103.0, 105.0)) == ["server-alive"]


def test_after_a_heal_an_end_that_has_recovered_may_be_reset_later() -> None:
    copy = SENT_AT + COPIES_S[4]
    traffic = quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:5]), recovered_at=copy + 0.001)

    assert failed(reset_by_client_at(105.0, 105.0, traffic=traffic, counted={}, counters={})) == []
    assert failed(reset_by_client_at(105.0, None, traffic=traffic, counted={}, counters={})) == ["server-recovery"]


def test_a_program_that_resets_after_the_heal_and_before_its_next_copy_leaves_nothing_to_recover() -> None:
    traffic = quiet(lost_at=SENT_AT, copies=copies(COPIES_S[:4]))
    soon = made_client(traffic=traffic, fate=closed(102.2), program_error_at=None, counted={}, counters={})
    late = replace(soon, fate=closed(104.0))

    assert failed(healed_at(102.0, client=soon)) == []
    assert failed(healed_at(102.0, client=late)) == ["client-recovery"], "a copy was due before"


def test_where_the_run_is_about_a_close_nobody_claims_that_the_flow_was_open() -> None:
    names = [check.name for check in proofs(made_findings(ended_early=None))]

    assert "open-at-cut" not in names
    assert "open-at-cut" in [check.name for check in proofs(made_findings())]


def test_a_run_with_its_server_outside_is_confirmed_by_the_client_alone() -> None:
    assert failed(made_outside()) == []
    assert outcome(made_outside()) is Outcome.CONFIRMED
    assert not [check.name for check in judged(made_outside()) if check.name.startswith("server-")]


UNTRANSLATED: dict[str, dict[str, Any]] = {
    "a flow that the router does not know": {"translated": None, "steady": False},
    "a translation that changed": {"steady": False},
    "a name under which nothing left": {"passed": {Direction.FORWARD: 0, Direction.RETURN: 11}},
    "a name under which nothing came back": {"passed": {Direction.FORWARD: 12, Direction.RETURN: 0}},
}


@pytest.mark.parametrize("case", UNTRANSLATED)
def test_a_translation_that_the_captures_do_not_show_proves_nothing(case: str) -> None:
    assert failed(made_outside(far=made_far(**UNTRANSLATED[case]))) == ["translated"]


SILENT = (FORWARD, made_passage(Direction.RETURN, 0))


def test_where_nothing_comes_from_outside_the_way_back_has_nothing_to_match() -> None:
    quiet_far = made_outside(matched=Matched(10, 0), passages=SILENT)
    [told] = [check for check in proofs(quiet_far) if check.name == "rule-matched-return"]

    assert outcome(quiet_far) is Outcome.CONFIRMED
    assert "nothing came from outside" in told.detail


def test_a_hole_for_what_comes_from_outside_alone_must_have_been_seen() -> None:
    """Cut one way only, and nothing came: no rule has shown that there was a hole."""
    _, back = SILENT
    assert failed(made_outside(matched=Matched(0, 0), passages=(back,))) == ["rule-matched-return"]


def test_what_comes_from_outside_must_be_matched() -> None:
    assert failed(made_outside(matched=Matched(10, 0))) == ["rule-matched-return", "rule-equals-capture-return"]
    through = replace(SILENT[1], crossed=(segment(101.0, back=True),))
    crossed = made_outside(matched=Matched(10, 0), passages=(FORWARD, through))
    assert failed(crossed) == ["rule-matched-return", "nothing-crossed"]


def test_an_idle_server_in_the_testbed_is_still_nudged() -> None:
    assert "rule-matched-return" in failed(made_findings(matched=Matched(10, 0), passages=SILENT))


def test_a_reset_after_the_heal_is_an_outside_servers_word_that_it_had_ended() -> None:
    healed = CutReceipt(began_at=102.0, done_at=102.0001)
    times = (0.206, 0.414, 0.842, 1.674, 2.698)
    reset = KernelFate(gone_at=SENT_AT + 2.6982, within_s=0.001, cause="reset", closed_at=None)
    traffic = quiet(lost_at=SENT_AT, copies=copies(times))
    client = made_client(fate=reset, traffic=traffic, program_error_at=None, **counted(5))

    assert failed(made_outside(client=client, healed=healed)) == []


def counted(number: int) -> dict[str, Any]:
    both = {"retransmissions": number, "keepalive-probes": 0, "window-probes": 0}
    return {"counted": both, "counters": both}
