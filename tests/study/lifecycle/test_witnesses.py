import asyncio
import socket
import struct
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB
from lab.live.lifecycle.stream import Stream
from lab.study.lifecycle import servers, ways, witnesses
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.stage import Left, Reading
from lab.study.lifecycle.witnesses import Trial, Watch, agrees
from tests.study.lifecycle.scenes import DEADLINE_S, HURRIED


def trial(*, reading: Reading | None = None, here: bool = True) -> Trial:
    stage = SimpleNamespace(server=SimpleNamespace(port=9), variant=LAB)
    left = Left(Life(10, 0.0), time.monotonic(), reading, here=here)
    return Trial(cast("Any", stage), ways.RELEASED, left)


def test_what_was_over_before_it_was_left_is_an_invalid_run() -> None:
    one = trial()

    assert one.after(None) is None
    assert one.after(one.left.at + 2.0) == pytest.approx(2.0)
    with pytest.raises(InvalidRun, match="before it was left"):
        one.after(one.left.at - 0.001)


def test_a_stream_has_ended_when_who_reads_it_elsewhere_would_come_to_its_end() -> None:
    async def scenario() -> None:
        stream: Stream[Any] = Stream()
        one = trial(reading=Reading(stream), here=False)
        async with Watch() as watch:
            watch.add(one)
            stream.put("unread")
            assert one.finished is False
            stream.finish()
            async with asyncio.timeout(DEADLINE_S):
                while one.read_to_end_at is None:
                    await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_socket_that_the_kernel_does_not_know_is_over() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S):
            server = await asyncio.start_server(lambda *_: None, servers.HOST, 0)
            async with server:
                port = server.sockets[0].getsockname()[1]
                _, writer = await asyncio.open_connection(servers.HOST, port)
                one = trial()
                one.left.life.port = writer.get_extra_info("sockname")[1]
                one.stage.server.port = port  # type: ignore[misc]  # it is none
                async with Watch() as watch:
                    watch.add(one)
                    while not one.socket:
                        await asyncio.sleep(0)
                    assert (one.socket, one.socket_over_at) == ("established", None)
                    linger = struct.pack("ii", 1, 0)  # RST, which no peer has to answer
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    writer.transport.abort()
                    while one.socket_over_at is None:
                        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_count_that_is_not_what_was_told_is_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "AGREE_S", 0.0)

    async def scenario() -> None:
        async with servers.running([HURRIED]) as up:
            await agrees(up[0])
            up[0].book.lives.append(Life(4000, time.monotonic()))
            with pytest.raises(InvalidRun, match=r"counts connections from \[\], and told of \[4000\]"):
                await agrees(up[0])

    asyncio.run(scenario())
