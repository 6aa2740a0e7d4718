"""Scalars are read as protobuf's JSON writes them."""

from typing import Any

import pytest

from lab.live.protocol.errors import ProtocolError
from lab.live.protocol.scalars import DURATION, INT64, NAMED, PRESENCE, TEXT, repeated, wrapped


@pytest.mark.parametrize(
    ("text", "seconds"), [("50s", 50.0), ("0.5s", 0.5), ("1.000000001s", 1.000000001), ("0s", 0.0)]
)
def test_a_duration_goes_both_ways(text: str, seconds: float) -> None:
    assert DURATION.read(text, "x") == seconds
    assert DURATION.write(seconds, False) == text


@pytest.mark.parametrize("value", ["50", "s", "1m", "1e3s", 50, None, "nans"])
def test_no_other_duration_is_read(value: Any) -> None:
    with pytest.raises(ProtocolError, match=r"'go_away\.time_left'"):
        DURATION.read(value, "go_away.time_left")


@pytest.mark.parametrize(("value", "number"), [("7", 7), (7, 7), (7.0, 7), ("-1", -1)])
def test_an_int64_is_a_string_or_a_number(value: Any, number: int) -> None:
    assert INT64.read(value, "x") == number
    assert INT64.write(number, False) == str(number)


@pytest.mark.parametrize("value", [True, 1.5, "1.5", "", None, {}, float("inf"), float("nan")])
def test_no_other_int64_is_read(value: Any) -> None:
    with pytest.raises(ProtocolError, match="TYPE_INT64"):
        INT64.read(value, "x")


def test_a_list_names_the_item_that_is_wrong() -> None:
    with pytest.raises(ProtocolError, match=r"'ids\[1\]' \(TYPE_STRING\), an object"):
        repeated(TEXT).read(["a", {}], "ids")


def test_one_value_is_a_list_of_one() -> None:
    assert repeated(NAMED).read({"a_b": 1}, "tools") == ({"aB": 1},)


def test_a_presence_is_an_object() -> None:
    assert PRESENCE.read({}, "x") is True
    with pytest.raises(ProtocolError, match="TYPE_MESSAGE"):
        PRESENCE.read(True, "x")


def test_a_wrapper_has_its_one_field() -> None:
    codec = wrapped(repeated(TEXT), "tools")
    assert codec.read(codec.write(("a",), False), "x") == ("a",)
    with pytest.raises(ProtocolError, match='Unknown name "others"'):
        codec.read({"others": []}, "x")
