import threading

from lab.run.sidebyside import FEWEST, SideBySide

TIMEOUT_S = 10


def over(runs: SideBySide, *, disturbed: bool, together: int = 1) -> None:
    """Let some runs go on together and end."""
    if together == 0:
        return
    with runs.slot() as slot:
        over(runs, disturbed=disturbed, together=together - 1)
        slot.disturbed = disturbed


def another(runs: SideBySide) -> tuple[threading.Thread, threading.Event]:
    """One more run, in a thread of its own; and whether it has its place."""
    began = threading.Event()

    def run() -> None:
        with runs.slot():
            began.set()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, began


def test_runs_that_are_not_disturbed_go_on_as_many_as_was_asked_for() -> None:
    runs = SideBySide(40)

    over(runs, disturbed=False, together=40)

    assert runs.width == 40


def test_a_disturbed_run_halves_the_width_once_for_all_that_went_on_with_it() -> None:
    runs = SideBySide(40)

    over(runs, disturbed=True, together=40)
    assert runs.width == 20

    over(runs, disturbed=True)
    assert runs.width == 10


def test_the_width_comes_back_by_one_for_each_width_of_good_runs() -> None:
    runs = SideBySide(40)
    over(runs, disturbed=True)

    for _ in range(21):
        over(runs, disturbed=False)
    assert runs.width == 21

    for _ in range(40 * 40):
        over(runs, disturbed=False)
    assert runs.width == 40


def test_some_always_go_on() -> None:
    few, one = SideBySide(40), SideBySide(1)
    for _ in range(20):
        over(few, disturbed=True)
        over(one, disturbed=True)

    assert few.width == FEWEST
    assert one.width == 1


def test_a_run_waits_for_a_place_and_has_it_when_another_ends() -> None:
    runs = SideBySide(1)

    with runs.slot():
        thread, began = another(runs)
        assert not began.wait(0)
    thread.join(TIMEOUT_S)

    assert began.is_set()


def test_a_run_that_raised_gives_its_place_back() -> None:
    runs = SideBySide(1)

    for _ in range(2):
        try:
            with runs.slot():
                raise RuntimeError
        except RuntimeError:
            pass

    over(runs, disturbed=False)


def test_after_the_close_nobody_waits() -> None:
    runs = SideBySide(1)

    with runs.slot():
        thread, began = another(runs)
        runs.close()
        thread.join(TIMEOUT_S)

    assert began.is_set()
