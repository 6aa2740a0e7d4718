"""Frames come out whole however the stream is cut, and nothing behind a wrong one is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.host.protocol.errors import FrameTooLong, FrameTruncated
from lab.host.protocol.framing import HEAD, MOST, Deframer, frame

PIECES = st.lists(st.binary(max_size=40), max_size=8)


def test_a_frame_is_four_octets_of_length_and_the_message() -> None:
    assert frame(b"ab") == b"\x00\x00\x00\x02ab"


@given(PIECES, st.lists(st.integers(1, 15), min_size=1))
def test_messages_come_out_as_they_went_in_however_the_stream_is_cut(messages: list[bytes], cuts: list[int]) -> None:
    stream, deframer, found = b"".join(map(frame, messages)), Deframer(), []
    while stream:
        for cut in cuts:
            found += deframer.feed(stream[:cut])
            stream = stream[cut:]
    deframer.end()

    assert found == messages


@given(PIECES, st.integers(MOST + 1, 2**32 - 1), st.binary(max_size=20))
def test_what_came_before_a_frame_that_is_too_long_is_read_and_nothing_behind_it(
    messages: list[bytes], octets: int, behind: bytes
) -> None:
    deframer = Deframer()

    assert deframer.feed(b"".join(map(frame, messages)) + octets.to_bytes(HEAD, "big") + behind) == messages
    assert deframer.broken is not None
    assert deframer.broken.octets == octets
    assert deframer.feed(frame(b"more")) == []
    deframer.end()


@given(st.binary(max_size=40), st.data())
def test_an_end_in_the_midst_of_a_frame_is_told(message: bytes, data: st.DataObject) -> None:
    whole = frame(message)
    came = data.draw(st.integers(1, len(whole) - 1))
    deframer = Deframer()
    deframer.feed(whole[:came])

    with pytest.raises(FrameTruncated) as told:
        deframer.end()
    assert told.value.octets == came
    assert told.value.wanted == (None if came < HEAD else len(whole))


def test_the_longest_message_passes_and_one_octet_more_does_not() -> None:
    assert Deframer().feed(frame(bytes(MOST))) == [bytes(MOST)]
    with pytest.raises(FrameTooLong, match="1048577 octets is longer than the 1048576"):
        frame(bytes(MOST + 1))


def test_errors_are_sentences_for_who_sent_it() -> None:
    assert str(FrameTruncated(3, None)) == "The stream ended after 3 octets of a frame, before its length had come."
    assert str(FrameTruncated(9, 12)) == "The stream ended after 9 octets of a frame, before 12 had come."
