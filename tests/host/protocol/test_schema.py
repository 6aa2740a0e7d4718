"""The set has the published numbers, session_closed has its own, and the reader knows what it does not know."""

from typing import Any

import pytest

from lab.host.protocol.messages import AgentState, ChatRole, CloseReason, UserState
from lab.host.protocol.schema import SESSION_CLOSED_FIELD, message_class, read


def numbers(of: Any) -> dict[int, str]:
    return {field.number: field.name for field in of.fields}


OUTER = message_class().DESCRIPTOR
INNER: dict[str, Any] = {field.name: field.message_type for field in OUTER.fields}


def test_the_outermost_message_has_the_published_numbers() -> None:
    assert numbers(OUTER) == {
        1: "audio_input",
        2: "audio_output",
        3: "event",
        4: "request",
        5: "response",
        6: "audio_playback_flush",
        7: "audio_playback_clear",
        8: "audio_playback_finished",
    }


def test_requests_have_the_published_numbers() -> None:
    assert numbers(INNER["request"]) == {
        1: "request_id",
        2: "ping",
        4: "get_chat_history",
        5: "run_input",
        6: "get_agent_info",
        7: "get_session_state",
        8: "get_rtc_stats",
        9: "get_session_usage",
        10: "get_framework_info",
        11: "update_io",
        12: "finalize_simulation",
    }


def test_responses_have_the_published_numbers() -> None:
    fields = numbers(INNER["response"])

    assert (fields[1], fields[2], fields[3], fields[13]) == ("request_id", "error", "pong", "finalize_simulation")
    assert sorted(fields) == [1, 2, 3, *range(5, 14)]


def test_events_are_the_released_ones_and_session_closed() -> None:
    fields = numbers(INNER["event"])

    assert sorted(fields) == [*range(10, 24), SESSION_CLOSED_FIELD]
    assert (fields[10], fields[23]) == ("agent_state_changed", "agent_false_interruption")
    assert fields[SESSION_CLOSED_FIELD] == "session_closed"


def test_a_remote_of_a_released_version_does_not_have_it() -> None:
    old = message_class(session_closed=False).DESCRIPTOR.fields_by_name["event"].message_type

    assert sorted(numbers(old)) == [*range(10, 24)]


@pytest.mark.parametrize(
    ("ours", "name", "prefix"),
    [
        (CloseReason, "CloseReason", "CR_"),
        (AgentState, "AgentState", "AS_"),
        (UserState, "UserState", "US_"),
        (ChatRole, "ChatRole", ""),
    ],
)
def test_enums_say_the_same_as_the_description(ours: type, name: str, prefix: str) -> None:
    described = OUTER.file.enum_types_by_name[name]

    assert {value.number: value.name for value in described.values} == {
        member.value: prefix + member.name
        for member in ours  # type: ignore[attr-defined]  # an enum is iterable
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("service Host {}", "does not know 'service'"),
        ("message M { map<string, string> m = 1; }", "does not know"),
        ("message M { string s : 1; }", "does not know"),
        ("message M { string s 1; }", "where '=' belongs"),
        ("message M { Other o = 1; }", "does not say what it is"),
    ],
)
def test_what_the_reader_does_not_know_it_says(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(text)
