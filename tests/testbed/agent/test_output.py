import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.testbed.agent import output
from lab.testbed.agent.output import Splitter, Transcript
from lab.testbed.ports import Line


def test_a_line_is_stamped_when_its_newline_was_read() -> None:
    splitter = Splitter("stdout")

    assert splitter.feed(b"one\ntw", 1.0) == [Line(1.0, "stdout", "one")]
    assert splitter.feed(b"o\n", 2.0) == [Line(2.0, "stdout", "two")]
    assert splitter.flush() == []


def test_a_partial_last_line_is_kept_with_its_own_stamp() -> None:
    splitter = Splitter("stderr")
    splitter.feed(b"done\nno newline", 1.0)

    assert splitter.flush() == [Line(1.0, "stderr", "no newline")]
    assert splitter.flush() == []


def test_a_line_without_end_is_cut_into_pieces() -> None:
    splitter = Splitter("stdout")

    lines = splitter.feed(b"x" * (output.MOST_LINE_BYTES * 2 + 5), 1.0)

    assert [len(line.text) for line in lines] == [output.MOST_LINE_BYTES] * 2
    assert [len(line.text) for line in splitter.flush()] == [5]


@given(st.lists(st.binary(max_size=40)))
def test_however_the_octets_come_the_lines_are_the_same(chunks: list[bytes]) -> None:
    splitter = Splitter("stdout")
    lines = [line.text for chunk in chunks for line in splitter.feed(chunk, 0.0)]
    lines += [line.text for line in splitter.flush()]

    *whole, rest = b"".join(chunks).split(b"\n")

    assert lines == [text.decode("utf-8", "backslashreplace") for text in (*whole, *([rest] if rest else []))]


def numbered(number: int) -> Line:
    return Line(float(number), "stdout", f"line {number}")


def test_too_many_lines_cost_the_middle_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "HEAD_LINES", 3)
    monkeypatch.setattr(output, "TAIL_LINES", 2)
    transcript = Transcript()
    for number in range(10):
        transcript.add(numbered(number))

    assert [line.at for line in transcript.kept()] == [0, 1, 2, 8, 9]
    assert transcript.lost_lines == 5
    assert transcript.lost_chars == sum(len(numbered(number).text) for number in range(3, 8))
    assert len(transcript) == 10


@pytest.mark.parametrize(
    ("position", "seen"),
    [(0, [0, 1, 2, 8, 9]), (2, [2, 8, 9]), (3, [8, 9]), (8, [8, 9]), (9, [9]), (10, [])],
)
def test_lines_from_a_position_on_skip_what_was_dropped(
    monkeypatch: pytest.MonkeyPatch, position: int, seen: list[int]
) -> None:
    monkeypatch.setattr(output, "HEAD_LINES", 3)
    monkeypatch.setattr(output, "TAIL_LINES", 2)
    transcript = Transcript()
    for number in range(10):
        transcript.add(numbered(number))

    assert [line.at for line in transcript.since(position)] == seen


def test_long_lines_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "HEAD_CHARS", 100)
    monkeypatch.setattr(output, "TAIL_CHARS", 100)
    transcript = Transcript()
    for number in range(20):
        transcript.add(Line(float(number), "stdout", "x" * 40))

    assert [line.at for line in transcript.kept()] == [0, 1, 18, 19]
