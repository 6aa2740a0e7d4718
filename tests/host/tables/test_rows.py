"""What a row says of its variant."""

import pytest

from lab.host.tables.rows import Question, Row


def row(*, right: bool, defective: bool, shows: bool) -> Row:
    return Row(Question.CLOSING, "case", "variant", "tcp", "seen", 0.12349, right, defective, shows)


@pytest.mark.parametrize(
    ("right", "defective", "shows", "ok"),
    [
        (True, False, False, True),
        (False, False, False, False),
        (False, True, True, True),
        (True, True, False, False),
        (False, True, False, False),
        (True, True, True, False),
    ],
    ids=["as promised", "wrong", "its defect", "defective and right", "another wrongness", "both at once"],
)
def test_a_variant_is_as_its_label_says_if_right_or_wrong_in_its_own_way(
    right: bool, defective: bool, shows: bool, ok: bool
) -> None:
    assert row(right=right, defective=defective, shows=shows).as_predicted is ok


def test_a_row_goes_into_json_with_its_time_to_a_tenth_of_a_millisecond() -> None:
    found = row(right=False, defective=True, shows=True).as_dict()

    assert (found["after_s"], found["question"], found["shows"]) == (0.1235, "session_closed", True)


def test_in_json_ok_is_right_in_itself_and_as_predicted_what_was_to_come_of_the_variant() -> None:
    found = row(right=False, defective=True, shows=True).as_dict()

    assert (found["ok"], found["right"], found["as_predicted"]) == (False, False, True)
