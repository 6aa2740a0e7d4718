"""What a program's output and its end say of when it knew."""

import json
from typing import Any

from lab.run.fate import KernelFate
from lab.run.noticing import first_event, has_told, read_noticing
from lab.testbed.ports import Line
from tests.run.cases import gave_up
from tests.run.fakes import FakeProcess

CUT_AT = 100.0


def event(at: float, name: str, **detail: object) -> str:
    return json.dumps({"at": at, "event": name, **detail})


def noticing(process: FakeProcess | None, seen: KernelFate, pattern: str | None = None, *, own: bool = False) -> Any:
    found = read_noticing(process, seen, CUT_AT, pattern=pattern, own=own)
    return found.at, found.by, found.errno


def test_a_pattern_alone_counts_where_one_is_given() -> None:
    process = FakeProcess()
    process.say(99.0, "lost it")
    process.say(106.0, "I lost it again")
    process.exit(105.0)

    assert noticing(process, gave_up(), "lost it") == (106.0, "output", None)
    assert noticing(process, gave_up(), "never") == (None, None, None)


def test_the_first_sign_counts_where_none_is_given() -> None:
    process = FakeProcess()
    process.exit(106.9, 1)
    closed = KernelFate(None, 0.0, None, closed_at=103.0)

    assert noticing(process, gave_up(106.8)) == (106.9, "exit", None)
    assert noticing(process, closed) == (103.0, "close", None)
    assert noticing(FakeProcess(), gave_up()) == (None, None, None)
    assert noticing(None, gave_up()) == (None, None, None)


def test_a_program_of_the_labs_own_says_its_error_and_when() -> None:
    process = FakeProcess()
    process.say(106.9, event(106.81, "error", errno="ETIMEDOUT"))
    process.exit(106.95, 1)

    assert noticing(process, gave_up(106.8), own=True) == (106.81, "error", "ETIMEDOUT")
    assert noticing(process, gave_up(106.8)) == (106.95, "exit", None), "a foreign line that looks so is not believed"


def test_output_that_is_no_event_is_passed_over() -> None:
    lines = [Line(1.0, "stdout", text) for text in ("hello", "{", "[1]", '"error"', event(1.0, "error", errno="EPIPE"))]

    assert first_event("error", lines) == {"at": 1.0, "event": "error", "errno": "EPIPE"}
    assert first_event("error", lines[:-1]) is None


def test_a_client_has_told_when_nothing_more_can_come() -> None:
    silent, talking, ended = FakeProcess(), FakeProcess(), FakeProcess(returncode=0)
    talking.say(101.0, event(101.0, "error", errno="ETIMEDOUT"))

    assert not has_told(silent, CUT_AT, pattern=None, own=False)
    assert not has_told(talking, CUT_AT, pattern=None, own=False)
    assert has_told(talking, CUT_AT, pattern=None, own=True)
    assert has_told(talking, CUT_AT, pattern="ETIMED", own=False)
    assert not has_told(talking, CUT_AT, pattern="never", own=True)
    assert has_told(ended, CUT_AT, pattern="never", own=False)
    assert has_told(None, CUT_AT, pattern="never", own=False)


def test_what_a_client_printed_before_the_cut_tells_nothing() -> None:
    talking = FakeProcess()
    talking.say(99.0, "connection lost; trying again")

    assert not has_told(talking, CUT_AT, pattern="connection lost", own=False)
    talking.say(101.0, "connection lost")
    assert has_told(talking, CUT_AT, pattern="connection lost", own=False)
