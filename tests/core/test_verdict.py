"""How checks add up to an outcome."""

from lab.core.verdict import Check, Kind, Outcome, judge, why

PROVED = Check("rules-matched", True, "7 packets")
PREDICTED = Check("client-window", True, "6.9 s in 6.8 to 7.1 s", Kind.PREDICTION)


def test_a_run_that_proved_itself_and_its_prediction_is_confirmed() -> None:
    assert judge([PROVED, PREDICTED]) is Outcome.CONFIRMED


def test_one_failed_proof_makes_everything_invalid() -> None:
    broken = Check("nothing-crossed", False, "1 segment")
    wrong = Check("client-window", False, "9 s", Kind.PREDICTION)
    assert judge([PROVED, broken, wrong]) is Outcome.INVALID
    assert why([PROVED, broken, wrong]) == "nothing-crossed: 1 segment"


def test_a_failed_prediction_refutes() -> None:
    wrong = Check("client-window", False, "9 s", Kind.PREDICTION)
    assert judge([PROVED, wrong]) is Outcome.REFUTED
    assert why([PROVED, wrong]) == "client-window: 9 s"


def test_nothing_checked_proves_nothing() -> None:
    assert judge([]) is Outcome.INVALID
    assert judge([PREDICTED]) is Outcome.INVALID
    assert judge([PROVED]) is Outcome.INVALID


def test_a_note_decides_nothing() -> None:
    assert judge([PROVED, PREDICTED, Check("horizon", False, "watched 5 s of 900", Kind.NOTE)]) is Outcome.CONFIRMED
