"""One attempt of a kind at a time, and its distance to the next."""

from lab.live.recovery.attempts import Line


def test_the_first_one_is_due_now_and_the_next_one_a_distance_after_its_start() -> None:
    line = Line(1.0)
    line.plan(100.0)
    assert [line.attempt, line.due_at] == [None, 100.0]

    line.begin(1, 100.2)
    assert [line.attempt, line.due_at] == [1, None]
    line.failed(100.5)
    assert [line.attempt, line.due_at] == [None, 101.2]


def test_a_plan_stands_and_an_open_attempt_needs_none() -> None:
    line = Line(1.0)
    line.plan(100.0)
    line.plan(105.0)
    assert line.due_at == 100.0

    line.begin(1, 100.0)
    line.plan(105.0)
    assert line.due_at is None


def test_the_distance_holds_after_a_stop() -> None:
    line = Line(1.0)
    line.begin(1, 100.0)
    assert line.stop() == 1
    assert line.stop() is None

    line.plan(100.4)
    assert line.due_at == 101.0


def test_one_out_of_turn_is_due_now_or_at_the_open_ones_end_and_only_once() -> None:
    line = Line(1.0)
    line.begin(1, 100.0)
    line.plan_at_once(100.1)
    line.failed(100.2)
    assert line.due_at == 100.2

    line.begin(2, 100.2)
    line.failed(100.3)
    assert line.due_at == 101.2
    line.plan_at_once(100.4)
    assert line.due_at == 100.4


def test_a_stop_forgets_what_was_out_of_turn() -> None:
    line = Line(1.0)
    line.begin(1, 100.0)
    line.plan_at_once(100.1)
    line.stop()
    line.begin(2, 101.0)
    line.failed(101.1)

    assert line.due_at == 102.0
