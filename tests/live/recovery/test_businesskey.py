"""The same slot in other words has one key; no two slots share one."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.recovery.businesskey import normalise, wording


@pytest.mark.parametrize(
    "text",
    [
        "tomorrow 3pm",
        "tomorrow at 3pm",
        "Tomorrow, 3 pm.",
        "3pm tomorrow",
        "the 3pm slot tomorrow",
        "tomorrow 3 p.m.",
        "tomorrow 3p.m.",
        "tomorrow at three pm",
        "three p.m. tomorrow",
        "tomorrow 3:00 PM",
        "tomorrow 15:00",
        "15:00:00 tomorrow",
        "  TOMORROW   at 15:00!",
    ],
)
def test_one_slot_in_many_wordings(text: str) -> None:
    assert wording(text) == "tomorrow 15:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mon 9am", "monday 09:00"),
        ("Thurs at 12am", "thursday 00:00"),
        ("today noon", "today 12:00"),
        ("today 12 pm", "today 12:00"),
        ("3:30pm", "15:30"),
        ("friday", "friday"),
        ("2026-10-04T15:00", "2026-10-04 15:00"),
        ("2026-10-04 at 3pm", "2026-10-04 15:00"),
        ("09:05", "09:05"),
        ("0:30", "00:30"),
        ("fifteen o'clock", "fifteen o'clock"),
        ("15 o'clock", "15:00"),
    ],
)
def test_days_and_times(text: str, expected: str) -> None:
    assert wording(text) == expected


@pytest.mark.parametrize("text", ["tomorrow at 3", "tomorrow 3:00", "three o'clock tomorrow", "tomorrow three"])
def test_a_time_that_leaves_the_half_of_the_day_open_is_neither_half(text: str) -> None:
    assert wording(text) == "tomorrow 3:00?"
    assert wording("tomorrow 10:30") == "tomorrow 10:30?"
    assert wording("tomorrow 12") == "tomorrow 12:00?"


@pytest.mark.parametrize(
    "text",
    [
        "the day after tomorrow at 3pm",
        "next monday 3pm",
        "tomorrow 3pm for two people",
        "tomorrow 3pm or 4pm",
        "today tomorrow 3pm",
        "tomorrow 13pm",
        "tomorrow 0pm",
        "tomorrow 25:00",
        "tomorrow 3:75pm",
        "tomorrow 24",
        "tomorrow 0",
        "3:00 3:00",
        "tomorrow 3 o'clock pm",
        "pm tomorrow",
        "at the",
        "3::00 tomorrow",
        "tomorrow 3:00:00",
        "",
    ],
)
def test_what_is_not_understood_whole_is_compared_as_text(text: str) -> None:
    assert wording(text.upper() + " .") in {text, "tomorrow 3:00?"}


def test_no_two_times_of_a_week_share_a_key() -> None:
    days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "today", "tomorrow")
    times = [f"{hour}:{minute:02}{half}" for hour in range(1, 13) for minute in (0, 15, 30) for half in ("am", "pm")]
    slots = [f"{day} {time}" for day, time in itertools.product(days, times)]

    assert len({wording(slot) for slot in slots}) == len(slots)
    open_ones = {wording(slot.removesuffix("am").removesuffix("pm")) for slot in slots}
    assert not open_ones & {wording(slot) for slot in slots}


def test_every_time_of_a_day_is_the_same_in_both_spellings() -> None:
    for hour, minute in itertools.product(range(24), range(60)):
        half = "am" if hour < 12 else "pm"
        assert wording(f"{(hour - 1) % 12 + 1}:{minute:02} {half}") == f"{hour:02}:{minute:02}"


WORDS = st.lists(
    st.sampled_from(
        ["today", "mon", "3pm", "3", "pm", "a.m.", "15:00", "three", "at", "noon", "o'clock", "next", "?", "2026-01-02"]
    )
).map(" ".join)


@given(WORDS, st.text())
def test_case_and_space_never_matter_and_no_text_is_too_odd(words: str, text: str) -> None:
    assert wording(words.upper().replace(" ", " \t")) == wording(words)
    assert wording(f" {text}\n") == wording(text)


def test_a_key_names_the_tool_and_its_arguments_in_one_order() -> None:
    expected = 'book_slot(name="ann lee", slot="tomorrow 15:00")'

    assert normalise("book_slot", {"slot": "tomorrow at 3pm", "name": "Ann  Lee"}) == expected
    assert normalise("book_slot", {"name": "ann lee", "slot": "tomorrow 3pm", "note": None}) == expected
    assert normalise("cancel_slot", {"slot": "tomorrow 3pm"}) != normalise("book_slot", {"slot": "tomorrow 3pm"})


def test_only_arguments_of_time_are_read_as_times() -> None:
    assert normalise("t", {"title": "Sun"}) != normalise("t", {"title": "Sunday"})
    assert normalise("t", {"day": "Sun"}) == normalise("t", {"day": "Sunday"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": "1"}),
        ({"n": 1}, {"n": True}),
        ({"n": 1.5}, {"n": 1}),
        ({"n": [1, 2]}, {"n": [2, 1]}),
        ({"a": "x", "b": "y"}, {'a="x", b': "y"}),
        ({"n": 'a", "b'}, {"n": ["a", "b"]}),
        ({"n": ["a", "b"]}, {"n": ['a", "b']}),
        ({"n": ["a\\", "b"]}, {"n": ['a\\", "b']}),
        ({}, {"n": ""}),
    ],
)
def test_different_values_have_different_keys(one: dict[str, object], other: dict[str, object]) -> None:
    assert normalise("t", one) != normalise("t", other)


def test_equal_values_have_one_key_however_they_are_nested() -> None:
    one = {"n": 1, "when": {"day": "tomorrow", "b": [1, "x"]}}
    other = {"when": {"b": (1.0, "X"), "day": "Tomorrow"}, "n": 1.0}

    assert normalise("t", one) == normalise("t", other)


JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text('a",=()[]{}\\: ', max_size=4)),
    lambda each: st.one_of(
        st.lists(each, max_size=3), st.dictionaries(st.text('a", =:', max_size=3), each, max_size=3)
    ),
    max_leaves=5,
)


def folded(value: object) -> object:
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, dict):
        return {key: folded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [folded(each) for each in value]
    return (type(value), value)


@given(st.dictionaries(st.text('ab", =:', max_size=3), JSON, max_size=3), st.data())
def test_keys_are_equal_only_if_the_arguments_are(one: dict[str, object], data: st.DataObject) -> None:
    other = data.draw(
        st.dictionaries(st.sampled_from([*one, "a"]), st.one_of(JSON, st.sampled_from([*one.values(), 0])))
    )

    assert (normalise("t", one) == normalise("t", other)) is (folded(one) == folded(other))
