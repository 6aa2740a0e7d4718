"""Profiles as data: their names, what a sweep may change, and what is refused."""

from dataclasses import fields

import pytest

from lab.core.errors import UsageError
from lab.live.session.profile import DEFAULT, PROFILES, DeadHandle, Handles, LimitRefusal, OldCall, Profile, find


def test_the_default_is_the_studys_server() -> None:
    assert find("gemini-3.8-live-2026-10") is DEFAULT
    assert DEFAULT.silence_close_s == 480
    assert DEFAULT.go_away_after_s is None
    assert DEFAULT.concurrent_limit is None
    assert 0 < DEFAULT.settle_s < 1.5


def test_each_disagreement_of_the_sources_has_its_profile_and_changes_that_alone() -> None:
    changed = {
        name: {field.name for field in fields(Profile) if getattr(profile, field.name) != getattr(DEFAULT, field.name)}
        - {"name", "description"}
        for name, profile in PROFILES.items()
    }

    assert changed == {
        "gemini-3.8-live-2026-10": set(),
        "old-call-ignored": {"old_call"},
        "many-handles": {"handles"},
        "slow-pongs": {"pong_delay_s"},
        "go-away": {"go_away_after_s", "go_away_time_left_s"},
        "dead-handle-1007": {"dead_handle_code"},
    }


def test_every_name_is_its_profiles_own() -> None:
    assert all(profile.name == name and profile.description for name, profile in PROFILES.items())


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="many-handles"):
        find("many-handle")


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("settle_s", "0.5", 0.5),
        ("settle_s", 0, 0.0),
        ("setup_s", "0.1,0.2", (0.1, 0.2)),
        ("setup_s", (0.1, 0.2), (0.1, 0.2)),
        ("setup_s", 0.3, (0.3, 0.3)),
        ("concurrent_limit", "3", 3),
        ("concurrent_limit", "none", None),
        ("go_away_after_s", "540", 540.0),
        ("go_away_after_s", None, None),
        ("limit_refusal", "429", LimitRefusal.HTTP_429),
        ("old_call", OldCall.IGNORE, OldCall.IGNORE),
        ("handles", "many", Handles.MANY),
        ("dead_handle_code", "1007", DeadHandle.INVALID_1007),
        ("name", "mine", "mine"),
    ],
)
def test_a_sweep_changes_a_field_by_value_or_by_text(name: str, given: object, expected: object) -> None:
    changed = DEFAULT.with_(**{name: given})

    assert getattr(changed, name) == expected
    assert changed.with_(**{name: getattr(DEFAULT, name)}) == DEFAULT


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("settle_s", "soon"),
        ("settle_s", -1),
        ("settle_s", "nan"),
        ("silence_close_s", 0),
        ("silence_close_s", "inf"),
        ("setup_s", "0.2,0.1"),
        ("setup_s", "0.1,0.2,0.3"),
        ("setup_s", ""),
        ("setup_s", ()),
        ("setup_s", None),
        ("concurrent_limit", "0"),
        ("concurrent_limit", "1.5"),
        ("limit_refusal", "503"),
        ("words_per_s", 0),
        ("words_per_s", "1e-6"),
        ("words_per_s", "1e300"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused_with_what_it_can(name: str, given: object) -> None:
    with pytest.raises(UsageError, match=rf"{name} cannot be .* Fix: Give"):
        DEFAULT.with_(**{name: given})


@pytest.mark.parametrize(
    ("name", "given", "form"),
    [
        ("concurrent_limit", 0, "a whole number above 0, or none"),
        ("burst", 0, "a number above 0"),
        ("words_per_s", 0, "a number from 0.1 to 100"),
        ("settle_s", -1, "a number that is not negative"),
    ],
)
def test_what_is_refused_is_not_what_is_asked_for(name: str, given: object, form: str) -> None:
    with pytest.raises(UsageError, match=rf"Give {form}\.$"):
        DEFAULT.with_(**{name: given})


def test_a_field_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no field settle\. Fix: Use one of: settle_s"):
        DEFAULT.with_(settle=1)


def test_every_field_is_in_its_range() -> None:
    for profile in PROFILES.values():
        assert profile.with_(**{field.name: getattr(profile, field.name) for field in fields(Profile)}) == profile
