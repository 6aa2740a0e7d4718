import pytest

from lab.report import units


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.00035, "0.35 ms"),
        (0.0, "0.000 s"),
        (0.2071, "0.207 s"),
        (9.9994, "9.999 s"),
        (13.4321, "13.43 s"),
        (938.46, "938.5 s"),
    ],
)
def test_durations_have_about_four_digits(value: float, said: str) -> None:
    assert units.seconds(value) == said


def test_a_duration_that_was_chosen_has_no_more_digits_than_were_chosen() -> None:
    assert units.brief(20.0) == "20 s"
    assert units.brief(0.5) == "0.5 s"


def test_a_window_without_an_end_is_never() -> None:
    assert units.window(None) == "never"
    assert units.window((13.11, 13.94)) == "13.11 to 13.94 s"
    assert units.window((9.3, 10.3)) == "9.30 to 10.30 s", "both ends to the same digit"
    assert units.window((0.001, 0.5)) == "0.001 to 0.500 s"


@pytest.mark.parametrize(("value", "said"), [(None, "?"), ((7, 7), "7"), ((7, 8), "7 to 8")])
def test_counts_are_a_number_a_range_or_unknown(value: tuple[int, int] | None, said: str) -> None:
    assert units.count(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0, "no copies"), (1, "1 copy"), ((7, 8), "7 to 8 copies"), ((0, 1), "0 to 1 copies")]
)
def test_copies_are_counted_in_words(value: int | tuple[int, int], said: str) -> None:
    assert units.copies(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(100.0, "100.0 s"), (119.9, "2 min 0 s"), (938.5, "15 min 38 s"), (7875.0, "2 h 11 min")]
)
def test_long_durations_are_said_as_people_say_them(value: float, said: str) -> None:
    assert units.long(value) == said


def test_a_close_that_only_samples_date_lies_between_two_of_them() -> None:
    assert units.closing(None, 1.434) == "at 1.434 s"
    assert units.closing(1.2591, 1.5106) == "between 1.259 and 1.511 s"
