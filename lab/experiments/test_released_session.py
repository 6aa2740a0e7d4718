"""Question: does a live session end when its application lets go of it, and is everybody told how it ended?

Topology::

    LiveSession, one per row ======== session server, one per endpoint        loopback: nothing is lost here
    LiveSession, one per row ======== a peer that ends as it is told

Prediction: as published (firebase-ios-sdk pull request 17045) a released session stays connected until the server's own
limit, and an application that opens one after the other is refused once the limit on sessions is reached. With the
repair there the server sees the end within 5 s on every path. The lab's session also keeps the first end in the race
between its own close and the receive that fails at it, and names who closed, which the published one does not.

Look at: the rows themselves; ``lab/study/lifecycle/`` says how each is measured, and ``predictions`` there what each is
to show.
"""

import asyncio

import pytest

from lab.experiments.apart import apart
from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import closes, race, ways
from lab.study.lifecycle.leaks import WITHIN_S
from lab.study.lifecycle.predictions import CLOSING, leaks_as_predicted
from lab.study.lifecycle.tables import Tables, measure


def measured() -> Tables:
    return asyncio.run(measure())


@pytest.fixture(scope="module")
def tables() -> Tables:
    return apart(measured)


@pytest.mark.parametrize("variant", [REPAIRED.name, LAB.name])
def test_a_released_session_is_over_within_five_seconds_on_every_path(variant: str, tables: Tables) -> None:
    found = [row for row in tables.leaks if row.variant == variant]

    assert len(found) == len(ways.PATHS) * len(ENDPOINTS)
    assert [row for row in found if not row.ok] == []
    for row in found:
        seen = [row.closed_in_s, row.socket_over_in_s]
        if row.path not in (ways.EXIT, *ways.OPEN_STREAM):
            seen.append(row.stream_ended_in_s)
        assert all(took_s is not None and took_s < WITHIN_S for took_s in seen), row


def test_as_published_it_stays_until_the_servers_limit(tables: Tables) -> None:
    found = [row for row in tables.leaks if row.variant == PUBLISHED.name]

    assert [row for row in found if row.path in CLOSING and not row.ok] == []
    leaked = [row for row in found if row.path not in CLOSING]
    assert len(leaked) == (len(ways.PATHS) - len(CLOSING)) * len(ENDPOINTS)
    assert [row for row in leaked if not leaks_as_predicted(row)] == []


def test_one_hundred_of_one_hundred_end_at_every_server(tables: Tables) -> None:
    assert [(row.closed, row.runs) for row in tables.repeated] == [(100, 100)] * 2 * len(ENDPOINTS)


def test_only_sessions_that_leak_run_into_the_limit(tables: Tables) -> None:
    refused = {(row.variant, row.limit, row.refused_at) for row in tables.limit}

    assert refused == {
        (variant, limit, 4 if variant == PUBLISHED.name and limit == 3 else None)
        for variant in (PUBLISHED.name, REPAIRED.name, LAB.name)
        for limit in (3, 1000)
    }


def test_the_first_end_stands_in_every_order_and_as_published_in_none(tables: Tables) -> None:
    labs = [row for row in tables.race if row.variant == LAB.name]
    assert all(row.ok for row in labs)
    assert max(row.runs for row in labs) == 10_000

    published = {row.order: row for row in tables.race if row.variant == PUBLISHED.name}
    assert published[race.EVERY].recorded_first == 0
    assert published[race.RECEIVE_FIRST].reader_right == published[race.RECEIVE_FIRST_SESSION].reader_right == 0


def test_whoever_closed_is_named(tables: Tables) -> None:
    assert [row for row in tables.closes if row.client == LAB.name and not row.ok] == []
    (taken,) = [
        row
        for row in tables.closes
        if (row.client, row.phase, row.how, row.code) == (PUBLISHED.name, closes.OPEN, closes.FRAME, 1001)
        and row.by == "server"
    ]
    assert (taken.reader, taken.is_closed) == ("nothing", False)


def test_nothing_contradicts_the_prediction(tables: Tables) -> None:
    assert tables.failures == []
