"""The instrument: what a server tells and counts is what is there."""

import asyncio
import errno
import socket
import threading
import urllib.request
from dataclasses import replace

import pytest

from lab.live.lifecycle import LAB
from lab.live.protocol import paths
from lab.live.server import status
from lab.live.server.parts import scripted
from lab.live.server.serving import Parts
from lab.study.lifecycle import servers
from lab.study.lifecycle.stage import Stage
from lab.study.lifecycle.witnesses import agrees
from tests.study.lifecycle.scenes import DEADLINE_S, HURRIED


def test_twenty_three_are_opened_told_of_and_counted_and_then_none() -> None:
    async def scenario() -> None:
        async with servers.running([HURRIED], concurrent_limit="none") as up:
            stage = Stage(up[0], LAB)
            opened = await asyncio.gather(*(stage.opened() for _ in range(23)))
            count = await asyncio.to_thread(up[0].count)
            assert count.ports == {life.port for _, life, _ in opened} == up[0].book.open_ports()
            assert (len(count.ports), count.counted) == (23, 23)
            await asyncio.gather(*(session.close() for session, *_ in opened))
            await agrees(up[0])

            assert up[0].book.open_ports() == frozenset()
            assert {life.how for life in up[0].book.lives} == {"close frame"}
            assert {life.version for life in up[0].book.lives} == {version(HURRIED.path)}

    asyncio.run(scenario())


def version(path: str) -> str:
    found = paths.find(path)
    assert found is not None
    return found.version


def test_a_lapse_hurries_the_servers_time() -> None:
    async def scenario() -> None:
        async with servers.running([HURRIED]) as up:
            before = await asyncio.to_thread(up[0].count)
            assert abs(before.session_s - before.at) < 1.0
            await asyncio.to_thread(up[0].lapse, 1000.0)
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    count = await asyncio.to_thread(up[0].count)
                    if count.session_s - count.at > 10:
                        return

    asyncio.run(scenario())


def test_a_server_is_asked_itself_whatever_proxy_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # nobody listens there
        taken.bind((servers.HOST, 0))
        monkeypatch.setenv("http_proxy", f"http://{servers.HOST}:{taken.getsockname()[1]}")
        urllib.request.install_opener(None)  # the one that there is may be of another environment

        async def scenario() -> None:
            async with servers.running([HURRIED]) as up:
                assert (await asyncio.to_thread(up[0].count)).counted == 0

        asyncio.run(scenario())


def test_a_server_that_cannot_listen_is_told_of_at_once_by_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_free(*_: object) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(status, "listen", none_free)

    async def scenario() -> None:
        async with servers.running([HURRIED]):
            raise AssertionError("there is none")

    with pytest.raises(OSError, match="Address already in use"):
        asyncio.run(scenario())
    assert not [thread for thread in threading.enumerate() if thread.name == "session servers"]


def test_the_event_loop_goes_on_while_servers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it measures would be late by so much otherwise."""
    came, went = threading.Event(), threading.Event()
    turned: list[bool] = []

    def held_up() -> Parts:
        turned.append(came.wait(DEADLINE_S))
        return replace(scripted(), close=lambda: turned.append(went.wait(DEADLINE_S)))

    monkeypatch.setattr(servers, "scripted", held_up)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(came.set)
        async with servers.running([HURRIED]):
            loop.call_soon(went.set)

    asyncio.run(scenario())

    assert turned == [True, True]
