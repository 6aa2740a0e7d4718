"""The leak table against one server; the experiments run all of it."""

import asyncio
import functools

import pytest

from lab.live.lifecycle import LAB, PUBLISHED
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import leaks, ways
from lab.study.lifecycle.leaks import PATHS, LeakRow

ENDPOINT = ENDPOINTS["developer-newer"]

LEAKING = (ways.RELEASED, ways.RESUMED, ways.SENDING, ways.CONNECTING, ways.STANDING)
"""Paths on which nobody closes."""


@functools.cache
def table() -> dict[tuple[str, str], LeakRow]:
    found = asyncio.run(leaks.rows([PUBLISHED, LAB], [ENDPOINT], watch_s=1.0))
    return {(row.variant, row.path): row for row in found}


@pytest.mark.parametrize("path", PATHS)
def test_however_the_labs_session_is_left_the_server_sees_its_end(path: str) -> None:
    row = table()[LAB.name, path]

    assert row.ok, row
    assert row.closed_in_s is not None
    assert row.server_limit_s is None


@pytest.mark.parametrize("path", LEAKING)
def test_released_as_published_it_stays_until_the_servers_limit(path: str) -> None:
    row = table()[PUBLISHED.name, path]

    assert not row.ok
    assert row.closed_in_s is None
    assert (row.stream_finished, row.service_kept, row.socket) == (False, True, "established")
    if path != ways.STANDING:  # whose loop never answers the server
        assert row.server_limit_s is not None
        limit_s = ENDPOINT.server.silence_close_s
        assert limit_s - 5 < row.server_limit_s < limit_s + 60, "a busy machine sees it late, and in a lapse of 100"


@pytest.mark.parametrize("path", [path for path in PATHS if path not in LEAKING])
def test_closing_or_ending_the_process_helps_as_published_too(path: str) -> None:
    assert table()[PUBLISHED.name, path].ok


def test_a_closed_session_that_is_held_says_so_and_its_stream_stays_open() -> None:
    row = table()[LAB.name, ways.CLOSED]

    assert (row.is_closed, row.stream_finished) == (True, False)


def test_released_again_and_again_every_one_ends() -> None:
    found = asyncio.run(leaks.repeated(LAB, ENDPOINT, 10))

    assert (found.closed, found.ok) == (10, True)


def test_a_row_is_what_the_contract_says() -> None:
    (first, *_) = leaks.as_json(table().values())

    assert {"variant", "profile", "path", "closed_in_s", "stream_finished", "ok"} <= first.keys()
