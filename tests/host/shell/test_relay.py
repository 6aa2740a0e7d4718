"""What a relay passes on, what it holds back and whom it refuses."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.host.programs.main import main
from lab.host.shell import relay
from lab.host.shell.relay import SIDES, Joint
from lab.programs import relay as carrying
from lab.programs.relay import CHUNK_BYTES
from tests.host.shell.relays import DEADLINE_S, TIMEOUT_S, running, until_said
from tests.testbed.isolated import until

RESET = b"\1\0\0\0\0\0\0\0"
SMALL = 1 << 14
"""Of a kernel's buffer, so that few octets fill it."""

both = pytest.mark.parametrize(("near", "far"), [("host", "remote"), ("remote", "host")], ids=["host", "remote"])


@dataclass
class Meeting:
    """A relay in a thread, and what it said."""

    joint: Joint
    ports: dict[str, int]
    said: list[dict[str, Any]]
    thread: threading.Thread = field(init=False)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.said if one["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        until(lambda: len(self.named(event)) >= count)
        return self.named(event)[count - 1]

    def come(self, side: str) -> socket.socket:
        """A connection that has been taken."""
        count = len(self.named("connected"))
        made = socket.create_connection(("127.0.0.1", self.ports[side]), TIMEOUT_S)
        self.wait_for("connected", count + 1)
        return made

    def join(self, near: str = "host") -> tuple[socket.socket, socket.socket]:
        """Both, the named one first."""
        ends = self.come(near), self.come("remote" if near == "host" else "host")
        self.wait_for("joined")
        return ends

    def over(self) -> bool:
        self.thread.join(TIMEOUT_S)
        return not self.thread.is_alive()


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meeting]:
    said: list[dict[str, Any]] = []
    for module in (relay, carrying):
        monkeypatch.setattr(module, "say", lambda event, **detail: said.append({"event": event, **detail}))
    failed: list[BaseException] = []
    with contextlib.ExitStack() as opened:
        listeners = {side: opened.enter_context(socket.create_server(("127.0.0.1", 0))) for side in SIDES}
        for listener in listeners.values():
            listener.setblocking(False)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                listener.setsockopt(socket.SOL_SOCKET, option, SMALL)
        stop, stopping = os.pipe()
        for descriptor in (stop, stopping):
            opened.callback(os.close, descriptor)
        joint = Joint(listeners, stop=stop)

        def run() -> None:
            try:
                joint.run()
            except BaseException as error:
                failed.append(error)
                raise

        made = Meeting(joint, {side: one.getsockname()[1] for side, one in listeners.items()}, said)
        made.thread = threading.Thread(target=run, daemon=True)
        made.thread.start()
        made.wait_for("listening")
        yield made
        os.write(stopping, b"x")
        assert made.over()
    assert failed == []


def reset(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    end.close()


def read(end: socket.socket, octets: int) -> bytes:
    got = b""
    while len(got) < octets and (data := end.recv(octets - len(got))):
        got += data
    return got


def drain(end: socket.socket) -> None:
    while end.recv(SMALL):
        pass


def test_octets_pass_both_ways_as_they_are_and_are_counted(meeting: Meeting) -> None:
    host, remote = meeting.join()
    anything = bytes(range(256)) * 8
    with host, remote:
        host.sendall(anything)
        assert read(remote, len(anything)) == anything
        remote.sendall(b"\xff" * 100)
        assert read(host, 100) == b"\xff" * 100
        host.close()
        assert remote.recv(1) == b""
    assert meeting.over()

    assert [one["side"] for one in meeting.named("ended")] == ["host", "remote"]
    (closed,) = meeting.named("closed")
    assert (closed["from_host"], closed["from_remote"]) == (2048, 100)


@both
def test_what_one_says_before_the_other_is_there_waits_for_it(meeting: Meeting, near: str, far: str) -> None:
    with meeting.come(near) as first:
        first.sendall(b"early")
        first.shutdown(socket.SHUT_WR)
        with meeting.come(far) as second:
            assert read(second, 5) == b"early"
            assert second.recv(1) == b"", "its end as well"
            second.sendall(b"answer")
            assert read(first, 6) == b"answer"


@both
def test_data_received_after_a_half_close_is_still_passed_on(meeting: Meeting, near: str, far: str) -> None:
    first, second = meeting.join(near)
    with first, second:
        first.shutdown(socket.SHUT_WR)
        assert second.recv(1) == b""
        assert meeting.wait_for("ended")["side"] == near
        second.sendall(b"after it")
        assert read(first, 8) == b"after it"
        second.close()
        assert first.recv(1) == b""
    assert meeting.over()
    assert [one["side"] for one in meeting.named("ended")] == [near, far]
    assert meeting.named("error") == []


@both
def test_a_reset_of_one_is_a_reset_of_the_other(meeting: Meeting, near: str, far: str) -> None:
    first, second = meeting.join(near)
    with second:
        reset(first)
        with pytest.raises(ConnectionResetError):
            second.recv(1)
    assert meeting.over()

    (error,) = meeting.named("error")
    assert (error["side"], error["errno"], meeting.named("ended")) == (near, "ECONNRESET", []), far


def flood(meeting: Meeting, sender: socket.socket) -> int:
    """Send until nobody takes any more, and how much it was."""
    way = next(way for way in carried(meeting)._ways if way.name == "from_host")
    count = 0
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            count += sender.send(bytes(SMALL))

    def full() -> bool:
        """Whether the relay has all that it holds, and its sender's kernel too."""
        nonlocal count
        with contextlib.suppress(BlockingIOError):
            count += sender.send(bytes(SMALL))
            return False
        return way.writes

    until(full)
    assert len(way._waiting) <= CHUNK_BYTES
    sender.settimeout(TIMEOUT_S)
    return count


def carried(meeting: Meeting) -> carrying.Relay:
    found = meeting.joint._relay
    assert found is not None
    return found


def test_a_sender_waits_for_who_does_not_read_and_all_of_it_arrives(meeting: Meeting) -> None:
    host, remote = meeting.join()
    with host, remote:
        count = flood(meeting, host)
        remote.sendall(b"the other way is free")
        assert read(host, 21) == b"the other way is free"
        assert len(read(remote, count)) == count
        host.sendall(b"and on")
        assert read(remote, 6) == b"and on"


def test_a_reset_is_passed_on_although_the_other_side_reads_nothing(meeting: Meeting) -> None:
    host, remote = meeting.join()
    with remote:
        flood(meeting, host)
        reset(host)
        assert meeting.wait_for("error")["side"] == "host"
        with pytest.raises(ConnectionResetError):
            drain(remote)


@both
def test_one_too_many_is_refused_with_a_line_and_the_others_are_served_on(
    meeting: Meeting, near: str, far: str
) -> None:
    with meeting.come(near) as first:
        refused(meeting, near, 1)
        with meeting.come(far) as second:
            meeting.wait_for("joined")
            refused(meeting, near, 2)
            refused(meeting, far, 3)
            first.sendall(b"still here")
            assert read(second, 10) == b"still here"


def refused(meeting: Meeting, side: str, count: int) -> None:
    with socket.socket() as third:
        third.settimeout(TIMEOUT_S)
        third.bind(("127.0.0.1", 0))
        own = list(third.getsockname())
        with pytest.raises(ConnectionResetError):
            knock(third, meeting.ports[side])
    line = meeting.wait_for("refused", count)
    assert (line["side"], line["remote"]) == (side, own)


def knock(end: socket.socket, port: int) -> None:
    """The reset may be quicker than connect(2)."""
    end.connect(("127.0.0.1", port))
    end.recv(1)


@both
def test_one_that_is_reset_before_the_other_comes_leaves_its_place(meeting: Meeting, near: str, far: str) -> None:
    reset(meeting.come(near))
    lost = meeting.wait_for("lost")
    assert (lost["side"], lost["errno"]) == (near, "ECONNRESET")
    first, second = meeting.join(near)
    with first, second:
        first.sendall(b"again")
        assert read(second, 5) == b"again", far


@both
def test_one_that_ended_before_the_other_comes_leaves_its_place_to_the_next(
    meeting: Meeting, near: str, far: str
) -> None:
    meeting.come(near).close()
    with meeting.come(near) as first:
        lost = meeting.wait_for("lost")
        assert (lost["side"], lost["errno"]) == (near, None)
        with meeting.come(far) as second:
            meeting.wait_for("joined")
            first.sendall(b"again")
            assert read(second, 5) == b"again"


def test_one_that_never_comes_is_waited_for_until_a_signal_and_the_other_is_reset() -> None:
    with running() as process:
        port = until_said(process, "listening")["remote"]
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as remote:
            until_said(process, "connected")
            process.terminate()
            with pytest.raises(ConnectionResetError):
                remote.recv(1)
        assert process.wait(DEADLINE_S) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S)


def test_a_port_that_is_taken_is_the_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["relay", "--host-port", "0", "--remote-port", port]) == 2
    assert "The relay cannot begin" in capsys.readouterr().err
