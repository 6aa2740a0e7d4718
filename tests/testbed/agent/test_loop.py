import os
from collections.abc import Iterator

import pytest

from lab.testbed.agent.loop import Loop


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_timers_fire_in_order_of_their_instants_and_not_before() -> None:
    loop = Loop()
    began = loop.time()
    fired: list[str] = []
    loop.call_at(began + 0.02, lambda: fired.append("second"))
    loop.call_at(began + 0.01, lambda: fired.append("first"))
    loop.call_at(began + 0.02, lambda: fired.append("third, asked for later"))
    loop.call_later(0.03, loop.stop)

    loop.run()

    assert fired == ["first", "second", "third, asked for later"]
    assert loop.time() - began >= 0.03


def test_a_cancelled_timer_never_fires() -> None:
    loop = Loop()
    fired: list[str] = []
    loop.call_later(0.001, lambda: fired.append("cancelled")).cancel()
    loop.call_later(0.005, loop.stop)

    loop.run()

    assert fired == []


def test_a_reader_is_called_until_it_is_removed(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    loop = Loop()
    seen: list[bytes] = []

    def read() -> None:
        seen.append(os.read(reader, 1))
        if len(seen) == 2:
            loop.remove_reader(reader)
            loop.remove_reader(reader)
            loop.call_later(0.005, loop.stop)

    loop.add_reader(reader, read)
    os.write(writer, b"abc")

    loop.run()

    assert seen == [b"a", b"b"]


def test_reader_and_writer_of_one_descriptor_are_independent() -> None:
    import socket

    near, far = socket.socketpair()
    with near, far:
        loop = Loop()
        called: list[str] = []
        loop.add_reader(near.fileno(), lambda: called.append("read") or loop.stop())  # type: ignore[func-returns-value]

        def written() -> None:
            called.append("write")
            loop.remove_writer(near.fileno())
            far.send(b"x")

        loop.add_writer(near.fileno(), written)
        loop.run()

    assert called == ["write", "read"]


def test_a_callback_may_remove_another_that_is_ready_too(pipe: tuple[int, int]) -> None:
    first, first_writer = pipe
    second, second_writer = os.pipe()
    loop = Loop()
    called: list[int] = []

    def call(fd: int, other: int) -> None:
        called.append(fd)
        loop.remove_reader(fd)
        loop.remove_reader(other)
        loop.call_later(0.005, loop.stop)

    loop.add_reader(first, lambda: call(first, second))
    loop.add_reader(second, lambda: call(second, first))
    for writer in (first_writer, second_writer):
        os.write(writer, b"x")

    loop.run()

    assert len(called) == 1
    os.close(second)
    os.close(second_writer)
