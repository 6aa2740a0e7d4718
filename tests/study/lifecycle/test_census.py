"""The instrument: what a server counts is what is there."""

import asyncio

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import servers
from lab.study.lifecycle.census import Census, census
from lab.study.lifecycle.ways import Stage

ENDPOINT = ENDPOINTS["agent-platform-older"]
DEADLINE_S = 10.0


def test_a_connection_is_counted_and_then_no_longer() -> None:
    async def scenario() -> None:
        with servers.running([ENDPOINT]) as up:
            async with census(up) as counts:
                session, ports = await Stage(up[0], LAB, counts).opened()
                assert counts.counted(up[0], ports[0])
                assert counts.gone(up[0], ports[0]) is None
                assert up[0].count().ports == {ports[0]}
                await session.close()
                async with asyncio.timeout(DEADLINE_S):
                    while (count := counts.gone(up[0], ports[0])) is None:
                        await asyncio.sleep(0.01)

                assert ports[0] not in count.ports
                assert abs(counts.session_s(up[0], count.at) - count.session_s) < 1.0

    asyncio.run(scenario())


def test_twenty_three_are_opened_and_twenty_three_are_counted() -> None:
    async def scenario() -> None:
        with servers.running([ENDPOINT]) as up:
            async with census(up) as counts:
                stage = Stage(up[0], LAB, counts)
                opened = await asyncio.gather(*(stage.opened() for _ in range(23)))
                count = await asyncio.to_thread(up[0].count)

                assert count.ports == {ports[0] for _, ports in opened}
                assert count.counted == 23
                await asyncio.gather(*(session.close() for session, _ in opened))

    asyncio.run(scenario())


def test_a_lapse_hurries_the_servers_time() -> None:
    async def scenario() -> None:
        with servers.running([ENDPOINT]) as up:
            counts = Census(up)
            await counts.look()
            await asyncio.to_thread(up[0].lapse, 1000.0)
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    count = await asyncio.to_thread(up[0].count)
                    if count.session_s - counts.session_s(up[0], count.at) > 10:
                        return

    asyncio.run(scenario())


def test_a_connection_that_no_server_counts_is_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.study.lifecycle.ways.SEEN_S", 0.1)

    async def scenario() -> None:
        with servers.running([ENDPOINT]) as up, pytest.raises(InvalidRun, match="did not count"):
            await Stage(up[0], LAB, Census(up)).seen([1])

    asyncio.run(scenario())
