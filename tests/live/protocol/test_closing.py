"""A close frame's sentence fits, and is the service's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.protocol import closing


@given(st.text(max_size=200))
def test_a_sentence_is_cut_between_characters(reason: str) -> None:
    kept = closing.cut(reason)

    assert len(kept.encode()) <= 123
    assert reason.encode("utf-8", "replace").decode().startswith(kept)
    assert len(kept.encode()) > 119 or kept == reason.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("known", closing.ALL)
def test_every_closing_has_a_code_of_its_own_and_a_source(known: closing.Closing) -> None:
    assert known.code in {1000, 1001, 1007, 1008, 1011}
    assert closing.cut(known.reason) == known.reason
    assert known.source


def test_the_concurrent_limit_is_told_as_far_as_it_was_seen() -> None:
    assert "RESOURCE_EXHAUSTED: Maximum concurrent se" in closing.EXHAUSTED.reason
