"""Every message comes back as it went; what is none is told; what is of a later version is no mistake."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.host.protocol import messages
from lab.host.protocol.codec import Codec
from lab.host.protocol.errors import NoMessage, Unsayable
from lab.host.protocol.messages import (
    AgentState,
    AgentStateChanged,
    CloseReason,
    Event,
    Message,
    Ping,
    Request,
    Response,
    SessionClosed,
    Unread,
)
from tests.host.protocol.strategies import MESSAGES

ANY: Any = messages
"""Its values as code has them that nobody checks."""

CODEC = Codec()
OLD = Codec(session_closed=False)
CLOSED = Event(SessionClosed(CloseReason.ERROR, "no model"))


def test_text_that_utf_8_cannot_hold_is_sent_without_what_it_cannot() -> None:
    assert CODEC.decode(CODEC.encode(Response("1", error="a\ud800b"))) == Response("1", error="a?b")


@given(MESSAGES)
def test_a_message_comes_back_as_it_went(message: Message) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


@given(st.binary(max_size=200))
def test_octets_are_a_message_or_told_to_be_none(data: bytes) -> None:
    with contextlib.suppress(NoMessage):
        assert isinstance(CODEC.decode(data), Message)


def test_session_closed_is_field_24_of_field_3_with_reason_1_and_error_2() -> None:
    inner = b"\x08\x01" + b"\x12\x08no model"
    event = b"\xc2\x01" + bytes([len(inner)]) + inner  # 24 << 3 | 2, as a varint

    assert CODEC.encode(CLOSED) == b"\x1a" + bytes([len(event)]) + event


def test_an_empty_request_is_there_all_the_same() -> None:
    assert CODEC.encode(Request("1", Ping())) == b'"\x05\n\x011\x12\x00'


def test_a_remote_of_a_released_version_takes_session_closed_for_an_unknown_event() -> None:
    assert OLD.decode(CODEC.encode(CLOSED)) == Event(None)


def test_a_set_without_an_event_cannot_send_it() -> None:
    with pytest.raises(Unsayable, match="does not have session_closed"):
        OLD.encode(CLOSED)
    with pytest.raises(Unsayable, match="an event that this side does not know"):
        CODEC.encode(Event(None))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("hello", "str is none of its values"),
        (ANY.Pong(), "pong"),
        (ANY.Event(Ping()), "this side's set does not have ping"),
        (ANY.Response("1", "hello"), "str is none of its values"),
        (ANY.Response("1", ANY.RunResult([ANY.ChatItem()])), r"items cannot be \[ChatItem"),
        (ANY.Response("1", ANY.RunResult(("hello",))), "said: ."),
        (ANY.Response("1", ANY.Finalized(True)), "user_verdict cannot be True"),
        (ANY.Event(SessionClosed(CloseReason.ERROR, ANY)), "error cannot be <module"),
        (ANY.AudioInput(sample_rate=-1), "sample_rate cannot be -1"),
    ],
    ids=repr,
)
def test_what_no_message_can_hold_is_who_gave_its_mistake(message: Any, why: str) -> None:
    with pytest.raises(Unsayable, match=why):
        CODEC.encode(message)


def test_a_request_and_a_response_of_a_later_version_keep_their_ids() -> None:
    later = b"\xfa\x07\x00"  # field 127, empty

    assert CODEC.decode(b'"\x06\n\x011' + later) == Request("1", None)
    assert CODEC.decode(b"*\x06\n\x011" + later) == Response("1")


def test_an_event_whose_body_is_not_looked_into_has_its_name() -> None:
    assert CODEC.decode(b"\x1a\x05\xaa\x01\x02\n\x00") == Event(Unread("debug_message"))


def test_a_later_versions_member_of_an_enum_is_the_first_one() -> None:
    changed = CODEC.encode(Event(AgentStateChanged(AgentState.SPEAKING, AgentState.SPEAKING)))

    assert CODEC.decode(changed.replace(b"\x08\x04\x10\x04", b"\x08\x63\x10\x63")) == Event(
        AgentStateChanged(AgentState.INITIALIZING, AgentState.INITIALIZING)
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "none of the known fields"),
        (b"\xfa\x07\x00", "none of the known fields"),
        (b"\x1a\x7f", "no protobuf"),
        (b"GET / HTTP/1.1\r\n", "no protobuf"),
        (b'"\x02\x12\x00', "a request without an id"),
        (b"*\x02\x1a\x00", "a response without an id"),
    ],
)
def test_what_is_no_message_is_told_why(data: bytes, why: str) -> None:
    with pytest.raises(NoMessage, match=why):
        CODEC.decode(data)
