"""One end's socket, wire and program brought together."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from lab.core.flow import Direction
from lab.core.retransmission import classify
from lab.core.segment import Flag
from lab.core.socket import TcpState, Timer
from lab.core.verdict import Kind
from lab.run.ends import Readings, read_end
from lab.run.fate import ABORTED, ENDED_OPEN
from lab.run.findings import EndFinding
from lab.run.predictions import predictions
from lab.run.proofs import proofs
from lab.run.sides import Side
from lab.run.spec import Program, RunSpec
from lab.testbed.ports import Node, SocketTrack
from tests.run.cases import COPIES_S, SENT_AT, made_findings, made_forecast, segment, watched
from tests.run.fakes import FLOW, FakeNode, FakeProcess, sample

FIN_S, GONE_S = 5.755, 5.77
"""Seconds from the send: a close 15 ms before the expiry that would have been the last copy."""

TALK = [
    segment(99.0, Flag.ACK | Flag.PSH, 7)._replace(seq=1),
    segment(99.0001, back=True)._replace(ack=8),
]
DATA = segment(SENT_AT, Flag.ACK | Flag.PSH, 7)._replace(seq=8)
SENT = [DATA, *(DATA._replace(time_s=SENT_AT + at) for at in COPIES_S[:7])]
FIN = segment(SENT_AT + FIN_S, Flag.ACK | Flag.FIN)._replace(seq=15)
RESET = segment(SENT_AT + GONE_S, Flag.RST, back=True)
HELD = sample(at=SENT_AT + 5.7, timer=Timer.RETRANSMIT, expires_s=0.07, unacked=1)


def end_of(
    process: FakeProcess,
    *looks: Any,
    fin: bool = True,
    module: str | None = "lab.programs.client",
    reset: bool = False,
    ended_open: int = 1,
) -> EndFinding:
    """A client's end, its kernel's count of a time-out that killed included.

    Another connection of the node may have ended open too.
    """
    segments = [*TALK, *SENT, *([FIN] if fin else []), *([RESET] if reset else [])]
    track = SocketTrack(looks, SENT_AT + GONE_S, 0.003)
    counts = {ABORTED: 1, ENDED_OPEN: ended_open, "TcpRetransSegs": 7}
    spec = RunSpec(Program(("srv",)), Program(("cli",), module=module), 5000)
    run = watched(
        spec=spec, until=107.2, forecasts={"client": made_forecast()}, programs={"client": cast("Any", process)}
    )
    side = Side(segments, [])
    read = Readings(
        tracks={"client": track},
        deltas={"client": counts},
        counted_at=107.3,
        sides={"left": side, "right": side},
        classes={"left": classify(segments, FLOW), "right": ()},
    )
    return read_end(cast("Node", FakeNode()), Direction.FORWARD, run, read)


def failed(end: EndFinding) -> list[str]:
    found = made_findings(client=replace(end, counters=end.counted, seen_until=107.1))
    return [c.name for c in (*proofs(found), *predictions(found)) if not c.ok and c.kind is not Kind.NOTE]


def test_a_close_between_two_looks_is_a_close_and_what_follows_an_orphans_end() -> None:
    end = end_of(FakeProcess(), HELD)

    assert end.let_go_at == pytest.approx(SENT_AT + FIN_S)
    assert end.fate.gone_at is None
    assert end.orphan is not None
    assert end.orphan.cause == "orphan-retries"
    assert [name for name in failed(end) if name.startswith("client")] == []


def test_a_close_that_a_look_saw_is_told_in_the_same_way() -> None:
    orphan = replace(HELD, at=SENT_AT + 5.76, state=TcpState.FIN_WAIT1, inode=0)
    unseen, seen = end_of(FakeProcess(), HELD), end_of(FakeProcess(), HELD, orphan)

    assert seen.let_go_at == unseen.let_go_at
    assert seen.orphan is not None
    assert unseen.orphan is not None
    assert (seen.orphan.cause, seen.orphan.predicted) == (unseen.orphan.cause, unseen.orphan.predicted)


def test_where_the_fin_waits_behind_lost_data_the_programs_own_word_tells_of_its_close() -> None:
    process = FakeProcess()
    process.say(SENT_AT + FIN_S + 0.001, json.dumps({"event": "closed", "at": SENT_AT + FIN_S}))
    end = end_of(process, HELD, fin=False)

    assert (end.let_go_at, end.fate.held_at) == pytest.approx((SENT_AT + FIN_S, HELD.at))
    assert end.orphan is not None
    assert end.orphan.cause == "orphan-retries"
    assert [name for name in failed(end) if name.startswith("client")] == []


def test_where_nobody_tells_of_a_close_the_kernels_counts_do() -> None:
    """A foreign program's, behind lost data, a few milliseconds before an expiry past its orphan's bound."""
    end = end_of(FakeProcess(), HELD, fin=False, module=None, ended_open=0)

    assert end.let_go_at is not None
    assert HELD.at < end.let_go_at <= SENT_AT + GONE_S
    assert end.fate.held_at == HELD.at
    assert end.orphan is not None
    assert end.orphan.cause == "orphan-retries"
    assert [name for name in failed(end) if name.startswith("client")] == []


@pytest.mark.parametrize("said_s", [1.0, 5.8])
def test_the_word_of_another_connections_close_tells_nothing(said_s: float) -> None:
    process = FakeProcess()
    process.say(SENT_AT + said_s, json.dumps({"event": "closed", "at": SENT_AT + said_s}))

    assert end_of(process, HELD, fin=False).fate.cause == "retries2"


@pytest.mark.parametrize(("reset", "cause"), [(True, "reset"), (False, "retries2")])
def test_a_program_that_says_closed_of_every_end_does_not_tell_of_a_close(reset: bool, cause: str) -> None:
    process = FakeProcess()
    told_s = GONE_S + 0.001
    process.say(SENT_AT + told_s, json.dumps({"event": "closed", "at": SENT_AT + told_s, "error": "ECONNRESET"}))
    end = end_of(process, HELD, fin=False, module="lab.live.client", reset=reset)

    assert (end.let_go_at, end.fate.cause, end.orphan) == (None, cause, None)


def test_without_a_word_and_without_a_fin_the_kernel_gave_up_and_that_was_too_early() -> None:
    end = end_of(FakeProcess(), HELD, fin=False)

    assert (end.let_go_at, end.fate.cause, end.orphan) == (None, "retries2", None)
    assert "client-window" in failed(end)


def test_a_program_that_was_given_the_error_had_not_closed() -> None:
    """It had shut down one direction; the FIN is of that."""
    process = FakeProcess()
    error = {"event": "error", "errno": "ETIMEDOUT", "at": SENT_AT + GONE_S}
    process.say(SENT_AT + GONE_S + 0.001, json.dumps(error))

    assert (end_of(process, HELD).let_go_at, end_of(process, HELD).fate.cause) == (None, "retries2")
