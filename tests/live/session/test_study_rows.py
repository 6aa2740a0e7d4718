"""The study's sessions, as far as a server alone decides them: refusals counted, and figures inside its ranges."""

from collections.abc import Callable

import pytest

from lab.live.session.commands import Audit
from tests.live.session.playbook import Stage

Draw = Callable[[float, float], float]
DRAWS: list[Draw] = [min, max, lambda low, high: (low + high) / 2]


def called(draw: Draw) -> Stage:
    """A session whose model has called its tool and is idle, 1.0 s after the call."""
    stage = Stage()
    stage.house._uniform = draw
    for line in ("open 1", "setup 1"):
        stage.do(line)
    stage.until(3)
    stage.do("type 1 book")
    stage.until(5)
    assert stage.out[-1] == "4 > 1 call c1"
    return stage


def attempt(stage: Stage, number: int) -> tuple[str, float]:
    """Dial with the first handle: what came of it, and seconds after the start."""
    began, before = stage.now, len(stage.out)
    stage.do(f"open {number}")
    stage.do(f"setup {number} h1")
    while True:
        answers = [line.split() for line in stage.out[before:] if line.split()[2] == str(number)]
        if answers:
            return answers[0][3], stage.now - began
        at = stage.house.next_at()
        assert at is not None
        assert at < began + 2
        stage.until(at)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("how", ["RST", "FIN", "close frame"])
def test_r1_and_p2_the_first_attempt_is_refused_and_the_retry_a_second_later_accepted(how: str, draw: Draw) -> None:
    stage = called(draw)
    stage.do(f"gone 1 {how}")

    what, refused_s = attempt(stage, 2)
    assert what == "close"
    assert 0.46 <= refused_s <= 0.71
    stage.until(stage.now + 1.0)
    what, took_s = attempt(stage, 3)
    assert what == "setupComplete"
    # Measured: 2.097 to 2.294 s after the drop, on a path with its own delay.
    assert 1.9 <= refused_s + 1.0 + took_s <= 2.35


@pytest.mark.parametrize("draw", DRAWS)
def test_p3_a_single_attempt_after_1_6_s_is_accepted(draw: Draw) -> None:
    stage = called(draw)
    stage.do("gone 1 RST")
    stage.until(stage.now + 1.6)

    what, took_s = attempt(stage, 2)
    assert what == "setupComplete"
    assert 0.49 <= took_s <= 0.61


def test_b1_ninety_of_ninety_attempts_are_refused_and_one_close_is_sent_479_s_after_the_cut() -> None:
    stage = called(min)
    cut = stage.now
    before = len(stage.out)
    for n in range(90):
        stage.until(cut + 2 + 10 * n)
        stage.do(f"open {n + 2}")
        stage.do(f"setup {n + 2} h1")
    stage.until(cut + 902)

    closes = [line.split() for line in stage.out[before:]]
    assert [line[3] for line in closes] == ["close"] * 91
    (own,) = [float(line[0]) - cut for line in closes if line[2] == "1"]
    assert 478.9 <= own <= 479.5
    assert {str(fields["code"]) for fields in stage.told(Audit.REFUSED)} == {"1011"}


def test_b2_a_server_whose_tcp_gave_up_refuses_for_fifteen_minutes_all_the_same() -> None:
    stage = called(min)
    stage.do("type 1 hello")
    stage.until(stage.now + 1.2)
    cut = stage.now
    stage.until(cut + 146.5)
    stage.do("gone 1 TCP timeout")
    for n in range(90):
        stage.until(cut + 150 + 10 * n)
        stage.do(f"open {n + 2}")
        stage.do(f"setup {n + 2} h1")
    stage.until(cut + 1100)

    assert len(stage.told(Audit.REFUSED)) == 90
    assert not [line for line in stage.out if "setupComplete" in line and not line.startswith("0.25")]


def test_b3_and_n1_after_the_clients_close_the_next_attempt_is_accepted_and_takes_the_old_calls_result() -> None:
    stage = called(min)
    for n in range(9):
        stage.until(5 + 2 + 10 * n)
        stage.do(f"open {n + 2}")
        stage.do(f"setup {n + 2} h1")
    stage.until(88.6)
    stage.do("gone 1 close frame")

    what, took_s = attempt(stage, 20)
    assert (what, round(took_s, 3)) == ("setupComplete", 0.5)
    stage.do("result 20 c1")
    stage.until(stage.now + 2)
    assert stage.out[-1].endswith("> 20 says two")
    assert stage.told(Audit.UNKNOWN_RESULT) == []


def test_n3_the_old_connection_goes_on_after_half_a_minute() -> None:
    stage = called(min)
    stage.until(stage.now + 30)
    stage.do("result 1 c1")
    stage.until(stage.now + 1)

    assert stage.out[-1].endswith("> 1 says one")
