import errno
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable

import pytest

from lab.core.flow import Endpoint
from lab.core.socket import SocketSample, TcpState, Timer
from lab.testbed.ports import SocketTrack
from lab.testbed.sockets import Listed, SocketTable
from lab.testbed.watcher import MOST_SAMPLES, SocketWatcher
from tests.core.test_sampling import IDLE
from tests.testbed.isolated import drop_at_receiver, fork, isolated
from tests.testbed.test_sockets import calling, connected, end, ends, port_of


def host(watcher: SocketWatcher, until: Callable[[], bool] = lambda: False, longest_s: float = 20.0) -> SocketTrack:
    """Do what an event loop does, until the socket is gone or the condition holds."""
    deadline = time.monotonic() + longest_s
    while (wake_at := watcher.wake_at()) is not None and not until():
        assert time.monotonic() < deadline, watcher.track()
        time.sleep(max(wake_at - time.monotonic(), 0))
        watcher.on_wake(time.monotonic())
    return watcher.track()


def states(track: SocketTrack) -> list[TcpState]:
    """Each state once per visit."""
    seen = [sample.state for sample in track.samples]
    return [state for index, state in enumerate(seen) if index == 0 or seen[index - 1] is not state]


def program_that_waits_for_its_errors(clients: list[socket.socket]) -> int:
    """A child that writes per client when its POLLERR came and which error it was to the pipe that is returned."""
    reading, writing = os.pipe()

    def program() -> None:
        poll = select.poll()
        waiting = {one.fileno(): one for one in clients}
        for descriptor in waiting:
            poll.register(descriptor, 0)
        told: dict[int, tuple[float, int]] = {}
        while len(told) < len(clients):
            for descriptor, _ in poll.poll():
                at = time.monotonic()
                told[clients.index(waiting[descriptor])] = (
                    at,
                    waiting[descriptor].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
                )
                poll.unregister(descriptor)
        os.write(writing, json.dumps([told[index] for index in range(len(clients))]).encode())

    fork(program)
    return reading


def watch_until_gone(watchers: list[SocketWatcher]) -> None:
    """Host several at once."""
    deadline = time.monotonic() + 20
    while wake_times := [at for watcher in watchers if (at := watcher.wake_at()) is not None]:
        assert time.monotonic() < deadline
        time.sleep(max(min(wake_times) - time.monotonic(), 0))
        for watcher in watchers:
            watcher.on_wake(time.monotonic())


def five_deaths() -> list[tuple[SocketTrack, float]]:
    """Five sockets that die one after the other by user timeout: their tracks, and when the program noticed."""
    flows = [connected() for _ in range(5)]
    clients = [client for _, client, _ in flows]
    pipe = program_that_waits_for_its_errors(clients)
    with SocketTable() as table:
        watchers = [SocketWatcher(table, *ends(client)) for client in clients]
        for index, (listener, client, _) in enumerate(flows):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 700 + 200 * index)
            drop_at_receiver(f"tcp dport {port_of(listener)}", f"tcp sport {port_of(listener)}")
        began_s, cpu_s = time.monotonic(), -time.process_time()
        for watcher, client in zip(watchers, clients, strict=True):
            watcher.on_wake(time.monotonic())
            client.send(b"lost")
        watch_until_gone(watchers)
        cpu_s += time.process_time()
    looks_per_s = sum(watcher.looks for watcher in watchers) / (time.monotonic() - began_s)
    cost = cpu_s / sum(watcher.looks for watcher in watchers)
    sys.stdout.write(f"{looks_per_s:.0f} looks per second, {cost * 1e6:.0f} us of CPU each\n")
    died = json.loads(os.read(pipe, 1000))
    assert {code for _, code in died} == {errno.ETIMEDOUT}
    return [(watcher.track(), at) for watcher, (at, _) in zip(watchers, died, strict=True)]


@isolated
def test_deaths_by_user_timeout_are_dated_to_twenty_milliseconds() -> None:
    close: list[bool] = []
    for _ in range(3):
        # Again where the machine was too busy just then to look in time: the track says so, but shows nothing.
        deaths = five_deaths()
        for track, noticed_at in deaths:
            assert track.gone_at is not None
            sys.stdout.write(
                f"{(track.gone_at - noticed_at) * 1e3:+.1f} ms, known to {track.gone_within_s * 1e3:.1f}\n"
            )
            # A program notices after the death, never before it.
            assert track.gone_at - track.gone_within_s <= noticed_at
            last = track.samples[-1]
            assert (last.timer, last.unacked, last.backoff) == (Timer.RETRANSMIT, 1, last.retransmits)
            counts = [sample.total_retrans for sample in track.samples]
            assert counts == sorted(counts)
        close = [t.gone_within_s <= 0.02 and abs((t.gone_at or 0.0) - noticed) <= 0.02 for t, noticed in deaths]
        if all(close):
            return
    assert all(close), close


@isolated
def test_the_far_end_that_is_never_told_stays_listed() -> None:
    listener, client, accepted = connected()
    drop_at_receiver(f"tcp dport {port_of(listener)}", f"tcp sport {port_of(listener)}")
    client.send(b"lost")
    with SocketTable() as table:
        watcher = SocketWatcher(table, *ends(accepted))
        began = time.monotonic()
        track = host(watcher, until=lambda: time.monotonic() > began + 0.5)
    assert (track.gone_at, track.gone_within_s) == (None, 0.0)
    assert states(track) == [TcpState.ESTABLISHED]


@isolated
def test_a_socket_may_come_after_its_watcher_and_end_as_a_time_wait_socket() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.socket()
    client.bind(("127.0.0.1", 0))
    with SocketTable() as table:
        watcher = SocketWatcher(table, end(client.getsockname()), end(listener.getsockname()))
        watcher.on_wake(time.monotonic())
        assert watcher.track() == SocketTrack(samples=[], gone_at=None, gone_within_s=0.0)
        client.connect(listener.getsockname())
        accepted = listener.accept()[0]
        host(watcher, until=lambda: bool(watcher.track().samples))
        client.close()
        host(watcher, until=lambda: watcher.track().samples[-1].state is TcpState.FIN_WAIT2)
        accepted.close()
        track = host(watcher, until=lambda: watcher.track().samples[-1].state is TcpState.TIME_WAIT)
    # FIN_WAIT1 lasts as long as the other end delays its acknowledgment.
    seen = [state for state in states(track) if state is not TcpState.FIN_WAIT1]
    assert seen == [TcpState.ESTABLISHED, TcpState.FIN_WAIT2, TcpState.TIME_WAIT]
    assert track.samples[-1].timer is Timer.TIME_WAIT
    assert track.gone_at is None


@isolated
def test_an_orphan_is_followed_to_its_end() -> None:
    listener, client, accepted = connected()
    drop_at_receiver(f"tcp dport {port_of(listener)}", f"tcp sport {port_of(listener)}")
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000)
    client.send(b"lost")
    with SocketTable() as table:
        watcher = SocketWatcher(table, *ends(client))
        watcher.on_wake(time.monotonic())
        client.close()
        track = host(watcher)
    assert states(track) == [TcpState.ESTABLISHED, TcpState.FIN_WAIT1]
    assert track.samples[0].inode
    assert track.samples[-1].inode == 0
    assert track.gone_within_s <= 0.02
    assert accepted.fileno() >= 0


@isolated
def test_a_request_socket_is_followed_until_it_is_answered() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    drop_at_receiver(f"tcp sport {port_of(listener)} tcp flags & syn == syn")
    client = calling(listener)
    with SocketTable() as table:
        watcher = SocketWatcher(table, end(listener.getsockname()), end(client.getsockname()))
        track = host(watcher, until=lambda: bool(s := watcher.track().samples) and s[-1].retransmits > 0)
    assert states(track) == [TcpState.SYN_RECV]
    assert track.samples[-1].timer is Timer.RETRANSMIT


# By script ----------------------------------------------------------------------------------------------------------


class Script(SocketTable):
    """A table that answers from a list: a sample with its cookie, or None."""

    def __init__(self, *answers: Listed | None) -> None:
        self.answers = list(answers)

    def query(self, local: Endpoint, remote: Endpoint) -> Listed | None:  # noqa: ARG002 - the one socket there is
        return self.answers.pop(0)


def listed(at: float, cookie: int = 1, unacked: int = 0) -> Listed:
    sample = SocketSample(
        **{name: getattr(IDLE, name) for name in SocketSample.__slots__} | {"at": at, "unacked": unacked}
    )
    return Listed(sample, cookie)


def play(*answers: Listed | None) -> SocketWatcher:
    table = Script(*answers)
    watcher = SocketWatcher(table, IDLE.local, IDLE.remote)
    while table.answers and watcher.wake_at() is not None:
        watcher.on_wake(watcher.wake_at() or 0.0)
    return watcher


def test_a_look_before_its_time_asks_nothing() -> None:
    watcher = play(listed(1.0))
    watcher.on_wake(0.0)
    assert watcher.looks == 1


def test_a_refusal_of_the_kernel_is_told_and_does_not_end_the_watch() -> None:
    class Refusing(Script):
        def query(self, local: Endpoint, remote: Endpoint) -> Listed | None:
            if not self.answers:
                raise OSError(errno.ENOBUFS, "No buffer space available")
            return super().query(local, remote)

    watcher = SocketWatcher(Refusing(listed(1.0)), IDLE.local, IDLE.remote)
    watcher.on_wake(1.0)
    with pytest.raises(OSError, match="No buffer space"):
        watcher.on_wake(1e9)
    assert watcher.wake_at() == 1e9 + 0.25
    assert watcher.track().gone_at is None


def test_only_what_changes_is_kept_with_the_look_before_it_and_the_last() -> None:
    track = play(
        listed(1), listed(2), listed(3), listed(4, unacked=1), listed(5, unacked=1), listed(6, unacked=1)
    ).track()
    assert [sample.at for sample in track.samples] == [1, 3, 4, 6]


def test_another_socket_with_the_same_ends_is_the_end_of_the_first() -> None:
    watcher = play(listed(1.0), listed(2.0, cookie=2))
    assert watcher.track().gone_at is not None
    assert watcher.wake_at() is None


def test_one_missing_answer_alone_is_not_the_end() -> None:
    watcher = play(listed(1.0), None, listed(2.0), listed(3.0))
    assert watcher.track().gone_at is None
    assert play(listed(1.0), None, None).track().gone_at is not None


def test_a_track_stays_bounded_and_keeps_its_first_and_last_sample() -> None:
    count = 3 * MOST_SAMPLES
    track = play(*(listed(float(at), unacked=at) for at in range(count))).track()
    assert len(track.samples) <= MOST_SAMPLES + 1
    assert (track.samples[0].at, track.samples[-1].at) == (0.0, count - 1.0)


@pytest.mark.parametrize("missing", [1, 2])
def test_an_end_lies_between_the_last_sight_and_the_first_miss(missing: int) -> None:
    before = time.monotonic()
    track = play(*[listed(before)] * missing, None, None).track()
    after = time.monotonic()
    assert track.gone_at is not None
    assert track.gone_at - track.gone_within_s == pytest.approx(before)
    assert before <= track.gone_at + track.gone_within_s <= after
