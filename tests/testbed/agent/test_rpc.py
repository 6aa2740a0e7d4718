import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import InvalidRun, UsageError
from lab.testbed.agent.rpc import Attached, Channel, serve


class Unpicklable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


class Service:
    """What the far process answers."""

    label = "an attribute"

    def add(self, first: int, second: int = 0) -> int:
        return first + second

    def fail(self) -> None:
        raise UsageError("the author's mistake", fix="mend it")

    def divide(self) -> float:
        return 1 / 0

    def unpicklable(self) -> None:
        raise Unpicklable(1, 2)

    def lock(self) -> object:
        return threading.Lock()

    def echo(self, data: bytes) -> bytes:
        return data

    def wait(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def own_pid(self) -> Attached:
        return Attached("mine", pid=os.getpid())

    def pipe(self) -> Attached:
        reader, writer = os.pipe()
        os.write(writer, b"through the pipe")
        os.close(writer)
        return Attached(None, fd=reader)

    def slow_pipe(self) -> Attached:
        time.sleep(0.1)
        return self.pipe()

    def die(self) -> None:
        os._exit(1)

    def _secret(self) -> str:
        return "never"


@pytest.fixture
def channel() -> Iterator[Channel]:
    near, far = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        near.close()
        serve(Service(), far)
        os._exit(0)
    far.close()
    channel = Channel(near, "The far process")
    yield channel
    channel.close()
    os.waitpid(pid, 0)


def test_a_method_is_called_and_an_attribute_read(channel: Channel) -> None:
    assert channel.call("add", 1, second=2) == 3
    assert channel.call("label") == "an attribute"


def test_errors_of_the_lab_travel_as_themselves(channel: Channel) -> None:
    with pytest.raises(UsageError) as caught:
        channel.call("fail")

    assert (caught.value.message, caught.value.fix) == ("the author's mistake", "mend it")


def test_other_errors_bring_their_traceback(channel: Channel) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        channel.call("divide")

    assert "return 1 / 0" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        ("unpicklable", RuntimeError, "Unpicklable: 1 and 2"),
        ("lock", TypeError, "result of lock cannot be sent"),
        ("_secret", AttributeError, "not public"),
        ("missing", AttributeError, "missing"),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_the_channel_lives_on(
    channel: Channel, method: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        channel.call(method)
    assert channel.call("add", 1) == 1


def test_messages_larger_than_any_buffer_arrive_whole(channel: Channel) -> None:
    data = os.urandom(3_000_000)

    assert channel.call("echo", data) == data


def test_a_process_id_and_a_descriptor_travel_beside_the_result(channel: Channel) -> None:
    value, pid, fd = channel.call_attached("own_pid")
    assert (value, fd) == ("mine", -1)
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)

    _, _, fd = channel.call_attached("pipe")
    assert os.read(fd, 100) == b"through the pipe"
    os.close(fd)


def test_a_late_reply_is_thrown_away(channel: Channel) -> None:
    with pytest.raises(TimeoutError, match=r"far process did not answer wait within 0\.02 s"):
        channel.call("wait", 0.2, timeout_s=0.02)

    assert channel.call("add", 20, 3) == 23


def test_the_descriptor_of_a_late_reply_is_closed(channel: Channel) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(TimeoutError):
        channel.call("slow_pipe", timeout_s=0.02)

    assert channel.call_attached("add", 1).fd == -1
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_an_interrupted_call_does_not_spoil_the_next(channel: Channel) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            channel.call("wait", 0.3)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert channel.call("add", 20, 3) == 23


def test_a_peer_that_dies_is_reported(channel: Channel) -> None:
    with pytest.raises(InvalidRun, match="The far process ended unexpectedly before it answered die"):
        channel.call("die")


def test_closing_releases_a_call_that_waits(channel: Channel) -> None:
    failures: list[BaseException] = []
    thread = threading.Thread(target=lambda: failures.append(raised(lambda: channel.call("wait", 0.5))))
    thread.start()
    while not channel._lock.locked():
        time.sleep(0.001)

    began = time.monotonic()
    channel.close()
    thread.join(10)

    assert time.monotonic() - began < 0.4
    assert "closed" in str(failures[0])
    with pytest.raises(InvalidRun, match="closed"):
        channel.call("add", 1)


def raised(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is, the test looks at it
        call()
    return caught.value


def test_calls_from_many_threads_get_their_own_answers(channel: Channel) -> None:
    answers: dict[int, int] = {}

    def ask(number: int) -> None:
        for _ in range(50):
            answers[number] = channel.call("add", number, 1)
            assert answers[number] == number + 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert answers == {number: number + 1 for number in range(8)}
