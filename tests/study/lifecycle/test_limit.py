import asyncio
import functools
from collections.abc import Awaitable

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, LiveSession, UnexpectedClosure, Variant
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


def test_a_refusal_that_is_not_the_limits_is_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is told the same of it."""
    connect = LiveSession.connect

    def refused(session: LiveSession) -> Awaitable[None]:
        async def refuse() -> None:
            raise UnexpectedClosure("The WebSocket closed unexpectedly, code 1011.")

        opened.append(session)
        return refuse() if len(opened) == 4 else connect(session)

    opened: list[LiveSession] = []
    monkeypatch.setattr(LiveSession, "connect", refused)
    with pytest.raises(InvalidRun, match="limit refused 0 sessions; who asked: UnexpectedClosure"):
        asyncio.run(limit.rows([PUBLISHED], [HURRIED], attempts=5))


def test_a_row_is_plain_data() -> None:
    assert limit.as_json([row(LAB)])[0]["profile"] == HURRIED.name
