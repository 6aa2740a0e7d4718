"""The demo's narration: what was predicted beside what is seen, each once."""

import io
from typing import Any

import pytest
from rich.console import Console

from lab.cli.narrator import Narrator, narrate
from lab.core.socket import TcpState
from lab.core.timeline import Observation
from lab.run.watch import EndWatch
from lab.testbed.ports import SocketTrack
from tests.run.cases import made_forecast
from tests.run.fakes import FLOW, sample

CUT_AT = 100.0


class Told:
    """A narrator and what it has said so far."""

    def __init__(self) -> None:
        self._output = io.StringIO()
        self._narrator = Narrator(Console(file=self._output, width=80))

    def __call__(self, kind: str, at: float = CUT_AT, source: str = "router", **detail: Any) -> list[str]:
        before = len(self._output.getvalue())
        self._narrator.tell(Observation(at, source, kind, detail))
        return self._output.getvalue()[before:].splitlines()


@pytest.fixture
def told() -> Told:
    narration = Told()
    narration("cut")
    return narration


def end(*totals: int, gone_at: float | None = None) -> EndWatch:
    """A client that sent at 100.1 and has resent so often at each of these looks."""
    samples = [sample(at=100.2 + number, total_retrans=total) for number, total in enumerate(totals)]
    return EndWatch(
        "client",
        made_forecast(),
        lambda: SocketTrack((), None, 0.0),
        sent_at=100.1,
        seen=SocketTrack(samples, gone_at, 0.004),
    )


def test_a_copy_is_told_once_with_the_time_that_was_predicted(told: Told) -> None:
    assert told("look", ends=[end(0, 1)]) == [
        "  1.20 s  client  copy 1   tail-loss probe    predicted 0.30 to 0.31",
    ]
    assert told("look", ends=[end(0, 1)]) == []
    assert told("look", ends=[end(0, 1, 2)]) == [
        "  2.20 s  client  copy 2   timeout copy       predicted 0.51 to 0.52",
    ]


def test_a_copy_beyond_the_prediction_is_said_to_be_one(told: Told) -> None:
    assert told("look", ends=[end(0, 9)])[-1].endswith("copy 9   not predicted")


def test_a_give_up_is_told_once(told: Told) -> None:
    assert told("look", ends=[end(0, gone_at=106.9)]) == [
        "  6.90 s  client  kernel gives up   predicted 6.88 to 6.92",
    ]
    assert told("look", ends=[end(0, gone_at=106.9)]) == []


def test_an_orphans_end_is_no_give_up(told: Told) -> None:
    closed = end(0, gone_at=102.9)
    assert closed.seen is not None
    orphan = sample(at=102.0, state=TcpState.FIN_WAIT1, inode=0)
    closed.seen = SocketTrack((*closed.seen.samples, orphan), 102.9, 0.004)

    assert told("look", ends=[closed]) == ["  2.90 s  client  orphan is gone"]


def test_an_end_that_has_not_sent_is_not_told_of(told: Told) -> None:
    quiet = end(0, 1)
    quiet.sent_at = None

    assert told("look", ends=[quiet]) == []


@pytest.mark.parametrize(
    ("kind", "detail", "line"),
    [
        ("heal", {}, "  1.50 s  HEALED. Packets pass again."),
        ("action", {"text": "send"}, "  1.50 s  client  sends a line into the hole"),
        ("reconnect", {}, "  1.50 s  client  tries a new connection on the same path"),
        ("noticed", {"errno": "ETIMEDOUT"}, "  1.50 s  client  program is told: ETIMEDOUT"),
        ("noticed", {"errno": None}, "  1.50 s  client  program is told"),
        ("noticed", {"errno": None, "by": "output"}, "  1.50 s  client  program is told"),
        ("noticed", {"errno": None, "by": "close"}, "  1.50 s  client  program closes its socket"),
        ("noticed", {"errno": None, "by": "exit"}, "  1.50 s  client  program exits"),
        ("reconnected", {"connected": True}, "          The new connection passed: only the old one is dark."),
        ("reconnected", {"connected": False}, "          The new connection was lost too."),
        ("bystander", {"alive": True, "lost": 0}, "          The bystander flow never noticed."),
        ("bystander", {"alive": True, "lost": 1}, "          The bystander flow was disturbed."),
    ],
)
def test_every_step_has_its_line(told: Told, kind: str, detail: dict[str, Any], line: str) -> None:
    assert told(kind, 101.5, "client", **detail) == [line]


@pytest.mark.parametrize("kind", ["prediction", "segment", "gave-up"])
def test_what_is_told_otherwise_is_not_told_here(told: Told, kind: str) -> None:
    assert told(kind) == []


def test_an_action_that_sends_nothing_is_not_told(told: Told) -> None:
    assert told("action", 101.0, "client", text="close") == []
    assert told("action", 101.0, "client", signal=9) == []


def test_before_the_cut_there_is_no_time_to_tell() -> None:
    narration = Told()

    assert narration("connected", 99.0, flow=str(FLOW))[0].startswith("          connected: 192.0.2.10:40000")
    assert narration("look", ends=[end(0, 1)]) == []


@pytest.mark.parametrize(("backend", "where"), [("netns", "in namespaces of their own"), ("docker", "in containers")])
def test_the_narration_begins_at_once_and_says_where(backend: str, where: str) -> None:
    output = io.StringIO()
    with narrate(Console(file=output, width=80), backend) as tell:
        assert output.getvalue() == f"Bringing up client, router and server {where} ...\n"
        tell(Observation(CUT_AT, "router", "cut"))
    assert "CUT." in output.getvalue()
