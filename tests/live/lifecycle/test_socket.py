"""A socket's recorded end, stepped by hand; the race in every order is in tests/study/lifecycle/test_race.py."""

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, Variant
from lab.live.lifecycle.endings import ClosedByServer, ClosedHere, Closure, Party, UnexpectedClosure, WireEnded
from lab.live.lifecycle.socket import LiveSocket


class Scripted:
    """A wire that gives frames, then an end."""

    def __init__(self, *came: str | bytes, end: Closure) -> None:
        self.came = list(came)
        self.end = end
        self.cancelled: list[int] = []
        self.left: list[int] = []

    async def open(self) -> None:
        pass

    async def receive(self) -> str | bytes:
        if self.came:
            return self.came.pop(0)
        raise WireEnded(self.end)

    async def send(self, _: bytes) -> None:
        raise WireEnded(self.end)

    async def cancel(self, code: int, _: str) -> None:
        self.cancelled.append(code)

    def leave(self, code: int, _: str) -> None:
        self.left.append(code)


def step(coroutine: object) -> None:
    """Run one that never waits."""
    with pytest.raises(StopIteration):
        coroutine.send(None)  # type: ignore[attr-defined]


def socket_of(variant: Variant, code: int, *came: str | bytes) -> tuple[LiveSocket, Scripted]:
    wire = Scripted(*came, end=Closure(Party.SERVER, code))
    return LiveSocket(wire, variant), wire


def test_a_servers_end_is_recorded_and_raised_by_sends() -> None:
    socket, _ = socket_of(LAB, 1011, b"frame")
    step(socket.receive())

    assert socket.recorded == Closure(Party.SERVER, 1011)
    assert isinstance(socket.messages.error, ClosedByServer)
    with pytest.raises(ClosedByServer):
        socket.send(b"late").send(None)


def test_a_close_after_a_servers_end_changes_nothing() -> None:
    socket, wire = socket_of(LAB, 1011)
    step(socket.receive())
    step(socket.close())

    assert socket.recorded == Closure(Party.SERVER, 1011)
    assert wire.cancelled == [1011]


def test_our_own_close_is_a_normal_end_of_the_stream() -> None:
    socket, wire = socket_of(LAB, 1011)
    step(socket.close())

    assert wire.cancelled == [1000]
    assert socket.messages.finished
    with pytest.raises(ClosedHere):
        socket.send(b"late").send(None)


def test_a_send_that_meets_the_end_says_how_it_ended() -> None:
    socket, _ = socket_of(LAB, 1008)
    with pytest.raises(ClosedByServer, match="1008"):
        socket.send(b"late").send(None)


def test_a_send_that_fails_at_a_close_of_ours_says_so_whatever_the_wire_calls_it() -> None:
    socket, wire = socket_of(LAB, 1011)

    async def closed_meanwhile(_: bytes) -> None:
        socket.recorded = Closure(Party.US, 1000)
        raise WireEnded(Closure(Party.NETWORK, 1006))

    wire.send = closed_meanwhile  # type: ignore[method-assign]
    with pytest.raises(ClosedHere):
        socket.send(b"late").send(None)


def test_left_without_a_loop_it_is_our_own_end() -> None:
    socket, wire = socket_of(LAB, 1011)
    socket.leave(1001, "")

    assert wire.left == [1001]
    assert socket.recorded == Closure(Party.US, 1001)


def test_left_after_a_servers_end_it_is_still_the_servers() -> None:
    socket, _ = socket_of(LAB, 1011)
    step(socket.receive())
    socket.leave(1001, "")

    assert socket.recorded == Closure(Party.SERVER, 1011)


def test_as_published_a_servers_1001_ends_the_stream_normally() -> None:
    socket, _ = socket_of(PUBLISHED, 1001)
    step(socket.receive())

    assert socket.messages.finished
    assert socket.messages.error is None


def test_as_published_any_other_end_is_unexpected_and_a_later_one_is_recorded_over_it() -> None:
    socket, _ = socket_of(PUBLISHED, 1011)
    step(socket.receive())
    assert isinstance(socket.messages.error, UnexpectedClosure)
    step(socket.close())

    assert socket.recorded == Closure(Party.US, 1001)
