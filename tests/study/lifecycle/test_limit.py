import asyncio
import functools

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, Variant
from lab.study.lifecycle import limit
from lab.study.lifecycle.limit import LimitRow
from tests.study.lifecycle.scenes import HURRIED


@functools.cache
def row(variant: Variant) -> LimitRow:
    (found,) = asyncio.run(limit.rows([variant], [HURRIED], attempts=5))
    return found


def test_as_published_the_first_session_over_the_limit_is_refused() -> None:
    found = row(PUBLISHED)

    assert (found.limit, found.refused_at, found.counted, found.ok) == (3, 4, 3, False)
    assert found.told.startswith("UnexpectedClosure")


@pytest.mark.parametrize("variant", [REPAIRED, LAB])
def test_released_sessions_are_never_in_each_others_way(variant: Variant) -> None:
    found = row(variant)

    assert (found.refused_at, found.ok) == (None, True)
    assert found.counted <= 1


def test_a_row_is_plain_data() -> None:
    assert limit.as_json([row(LAB)])[0]["profile"] == HURRIED.name
