"""What is done to programs and path comes in its order, at its time, and is told."""

import itertools
import threading
from typing import Any, cast

import pytest

from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Matched
from lab.run.agenda import Agenda
from lab.run.cue import Cue
from lab.run.spec import Action
from lab.run.trigger import LineTrigger
from tests.run.fakes import FAULT, Clock, FakeProcess, FakeRouter, nodes


def made(*actions: Action, **changes: Any) -> tuple[Agenda, Clock, dict[str, FakeProcess], list[tuple[str, str]]]:
    spec = type("Spec", (), {"actions": actions, "reconnect_at_s": None, "heal_after_s": None, "port": 5000, **changes})
    clock, programs = Clock(), {"client": FakeProcess(), "server": FakeProcess()}
    told: list[tuple[str, str]] = []

    def observe(source: str, kind: str, _at: float | None = None, **_: object) -> None:
        told.append((source, kind))

    biting = FakeRouter(readings=(Matched(n, n) for n in itertools.count()))
    agenda = Agenda(cast("Any", spec), nodes(router=biting)[1], programs, clock.patience(), observe)
    return agenda, clock, programs, told


def test_nothing_is_done_before_its_time_and_everything_once() -> None:
    agenda, clock, programs, told = made(Action(0.5, "client", "b"), Action(0.2, "client", "a"))
    agenda.begin(FAULT, 100.0)

    assert agenda.next_at() == pytest.approx(100.2)
    agenda.do_what_is_due()
    assert programs["client"].written == []
    clock.now = 100.6
    agenda.do_what_is_due()
    agenda.do_what_is_due()
    assert programs["client"].written == ["a\n", "b\n"]
    assert agenda.next_at() is None
    assert told == [("client", "action")] * 2


def test_what_comes_before_the_cut_is_done_that_long_before_it() -> None:
    agenda, clock, programs, _ = made(Action(-0.3, "server", "close"), Action(0.1, "server", "late"))
    agenda.act_before(101.0)

    assert clock.now == pytest.approx(100.7)
    assert programs["server"].written == ["close\n"]


def test_a_program_that_cannot_be_told_makes_the_run_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: FakeProcess, text: str) -> None:
        raise BrokenPipeError(text)

    agenda, _, programs, _ = made(Action(-0.3, "client", "send"))
    programs["client"].exit(100.0, 3)
    monkeypatch.setattr(FakeProcess, "write", broken)

    with pytest.raises(InvalidRun, match="has ended with status 3"):
        agenda.act_before(101.0)


def cue_for(programs: dict[str, FakeProcess], delay_s: float = 0.0, within_s: float = 60.0) -> Cue:
    trigger = LineTrigger("client", "path back", delay_s, within_s)
    return Cue(trigger, programs["client"], threading.Event(), since=100.0)


def test_the_heal_follows_its_line_and_is_waited_for_until_then() -> None:
    agenda, clock, programs, told = made(uplink=None)
    agenda.begin(FAULT, 100.0, cue_for(programs, delay_s=0.5))
    agenda.do_what_is_due()
    assert (agenda.waits, agenda.next_at()) == (True, None)

    programs["client"].say(103.0, "path back")
    clock.now = 103.1
    agenda.do_what_is_due()
    assert not agenda.waits
    assert agenda.next_at() == pytest.approx(103.5)
    assert told == [("client", "line")]
    clock.now = 103.5
    agenda.do_what_is_due()
    assert agenda.healed is not None
    assert told == [("client", "line"), ("router", "heal")]
    agenda.refuse_silence()


def test_a_heal_whose_line_never_came_is_the_authors_mistake() -> None:
    agenda, clock, programs, _ = made()
    agenda.begin(FAULT, 100.0, cue_for(programs, within_s=5.0))
    with pytest.raises(UsageError, match="before the watch ended"):
        agenda.refuse_silence()
    clock.now = 105.0

    with pytest.raises(UsageError, match="no line with 'path back' within 5 s"):
        agenda.do_what_is_due()
