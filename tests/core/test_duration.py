"""Durations are read as people write them, and nonsense is refused."""

import pytest

from lab.core.duration import format_duration, parse_duration
from lab.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2s", 2.0),
        ("500ms", 0.5),
        ("15m", 900.0),
        ("15min", 900.0),
        ("1.5", 1.5),
        (".5s", 0.5),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("200000us", 0.2),
        (" 3 s ", 3.0),
        ("0", 0.0),
        (7, 7.0),
    ],
)
def test_a_duration_becomes_seconds(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "2x", "-1", "1,5", "2s3", "nan", "inf", "1e3", "٣s", float("nan"), -1.0])
def test_nonsense_is_refused_with_what_was_seen(text: str | float) -> None:
    with pytest.raises(UsageError, match="Expected a duration") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.2044, "204 ms"),
        (0.9999, "1 s"),
        (6.857, "6.86 s"),
        (9.996, "10.0 s"),
        (13.35, "13.3 s"),
        (59.999, "1 m"),
        (60, "1 m"),
        (938.0, "15 m 38 s"),
        (3599.9, "1 h"),
        (7875.0, "2 h 11 m"),
        (90_000.0, "1 d 1 h"),
        (-2.5, "-2.5 s"),
    ],
)
def test_seconds_are_written_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
