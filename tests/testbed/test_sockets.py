import contextlib
import re
import socket
import subprocess
import sys
import time

import pytest

from lab.core.errors import Unsupported
from lab.core.flow import Endpoint
from lab.core.socket import SocketSample, TcpState, Timer
from lab.testbed import sockets
from lab.testbed.sockets import SocketTable, list_sockets, query
from tests.testbed.isolated import drop_at_receiver, heal, isolated, until

LOOPBACK: dict[int, str] = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def end(address: tuple[str, int]) -> Endpoint:
    return Endpoint(address[0].removeprefix("::ffff:"), address[1])


def connected(family: int = socket.AF_INET) -> tuple[socket.socket, socket.socket, socket.socket]:
    """Listener, client, accepted."""
    listener = socket.create_server((LOOPBACK[family], 0), family=family)
    client = socket.create_connection(listener.getsockname()[:2])
    return listener, client, listener.accept()[0]


def ends(one: socket.socket) -> tuple[Endpoint, Endpoint]:
    return end(one.getsockname()[:2]), end(one.getpeername()[:2])


def calling(listener: socket.socket) -> socket.socket:
    """A client whose connection is under way."""
    client = socket.socket()
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.connect(listener.getsockname())
    return client


def port_of(one: socket.socket) -> int:
    port: int = one.getsockname()[1]
    return port


def sample_of(one: socket.socket) -> SocketSample:
    sample = query(*ends(one))
    assert sample is not None
    return sample


# What ss says -------------------------------------------------------------------------------------------------------

SS_STATES = {
    "ESTAB": TcpState.ESTABLISHED,
    "LISTEN": TcpState.LISTEN,
    "SYN-SENT": TcpState.SYN_SENT,
    "SYN-RECV": TcpState.SYN_RECV,
    "TIME-WAIT": TcpState.TIME_WAIT,
    "FIN-WAIT-2": TcpState.FIN_WAIT2,
    "FIN-WAIT-1": TcpState.FIN_WAIT1,
    "CLOSE-WAIT": TcpState.CLOSE_WAIT,
}
SS_TIMERS = {"on": Timer.RETRANSMIT, "keepalive": Timer.KEEPALIVE, "timewait": Timer.TIME_WAIT, "persist": Timer.PROBE}


def ss_end(text: str) -> Endpoint:
    address, port = text.rsplit(":", 1)
    address = address.strip("[]").removeprefix("::ffff:")
    return Endpoint(address.replace("*", "::"), 0 if port == "*" else int(port))


def ss_seconds(text: str) -> float:
    """``1min59sec``, ``4.204ms`` (four seconds and 204 ms), ``204ms``."""
    minutes = re.search(r"(\d+)min", text)
    seconds = re.search(r"(\d+)sec", text) or re.search(r"(\d+)\.\d+ms", text)
    milliseconds = re.search(r"(\d+)ms", text)
    total = 60.0 * int(minutes[1]) if minutes else 0.0
    total += int(seconds[1]) if seconds else 0
    return total + (int(milliseconds[1]) / 1e3 if milliseconds else 0)


def ss() -> dict[tuple[Endpoint, Endpoint], tuple[list[str], str]]:
    """Per socket the columns and the rest of its line."""
    shown = subprocess.run(["ss", "-tianeoOH"], capture_output=True, text=True, check=True).stdout
    listed = {}
    for line in shown.splitlines():
        columns = line.split(maxsplit=5)
        listed[ss_end(columns[3]), ss_end(columns[4])] = (columns[:5], columns[5] if len(columns) > 5 else "")
    return listed


def number(rest: str, name: str, default: float = 0) -> float:
    found = re.search(rf"(?:^|\s){name}:(\d+(?:\.\d+)?)", rest)
    return float(found[1]) if found else default


def assert_agrees(ours: SocketSample, columns: list[str], rest: str) -> None:
    assert SS_STATES[columns[0]] == ours.state
    assert (int(columns[1]), int(columns[2])) == (ours.recv_queue, ours.send_queue)
    assert number(rest, "ino") == ours.inode
    timer = re.search(r"timer:\((\w+),([^,]*),(\d+)\)", rest)
    assert (SS_TIMERS[timer[1]] if timer else Timer.OFF) == ours.timer
    assert (int(timer[3]) if timer else 0) == ours.retransmits
    assert (ours.expires_s is None) == (timer is None)
    if timer and ours.expires_s is not None:
        # ss was asked up to 0.3 s later, and leaves milliseconds out above nine seconds.
        least = ours.expires_s - 0.3 - (ours.expires_s > 9)
        assert least <= ss_seconds(timer[2]) <= ours.expires_s, (timer[2], ours)
    if ours.state in (TcpState.LISTEN, TcpState.TIME_WAIT, TcpState.SYN_RECV):
        return
    assert number(rest, "rto") == pytest.approx(ours.rto_s * 1e3, abs=0.51)
    rtt = re.search(r"\srtt:([\d.]+)/([\d.]+)", rest)
    if rtt:
        assert float(rtt[1]) == pytest.approx(ours.srtt_s * 1e3, rel=1e-4)
        assert float(rtt[2]) == pytest.approx(ours.rttvar_s * 1e3, rel=1e-4)
    assert number(rest, "backoff") == ours.backoff
    assert number(rest, "unacked") == ours.unacked
    assert number(rest, "notsent") == ours.not_sent_bytes
    assert number(rest, "snd_wnd") == ours.peer_window
    retrans = re.search(r"\sretrans:\d+/(\d+)", rest)
    assert (int(retrans[1]) if retrans else 0) == ours.total_retrans
    for name, seconds in (
        ("lastsnd", ours.last_data_sent_s),
        ("lastrcv", ours.last_data_received_s),
        ("lastack", ours.last_ack_received_s),
    ):
        assert seconds - 0.01 <= number(rest, name) / 1e3 <= seconds + 0.3, (name, rest, ours)


def assert_all_agree() -> list[SocketSample]:
    """Compare every socket with ss; a look in which something changed meanwhile is repeated."""
    failure: AssertionError | None = None
    for _ in range(3):
        ours = list_sockets()
        theirs = ss()
        try:
            seen = {(one.local, one.remote) for one in ours}
            assert seen == set(theirs), seen ^ set(theirs)
            for one in ours:
                assert_agrees(one, *theirs[one.local, one.remote])
        except AssertionError as error:
            failure = error
        else:
            return ours
    raise failure or AssertionError


@isolated
def test_every_field_agrees_with_ss() -> None:
    kept = [one for family in LOOPBACK for one in connected(family)]
    dual = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    mapped = socket.create_connection(("127.0.0.1", dual.getsockname()[1]))
    kept += [dual, mapped, dual.accept()[0]]

    idle = connected()
    idle[1].setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle[1].setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 8)

    full = connected()
    full[1].setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            full[1].send(bytes(65536))

    closing = connected()
    closing[2].close()
    closing[1].close()

    half = connected()
    half[1].close()

    dark = connected()
    dark[1].sendall(b"heard")
    until(lambda: sample_of(dark[2]).recv_queue == 5)
    drop_at_receiver(f"tcp dport {port_of(dark[0])}", f"tcp sport {port_of(dark[0])}")
    dark[1].sendall(b"lost")
    asking = socket.create_server(("127.0.0.1", 0))
    drop_at_receiver(f"tcp sport {port_of(asking)} tcp flags & syn == syn")
    _callers = [calling(dark[0]), calling(asking)]

    until(lambda: sample_of(dark[1]).backoff == 2)
    until(lambda: sample_of(full[1]).timer is Timer.PROBE)
    ours = assert_all_agree()
    assert {one.state for one in ours} >= {
        TcpState.ESTABLISHED,
        TcpState.LISTEN,
        TcpState.SYN_SENT,
        TcpState.SYN_RECV,
        TcpState.TIME_WAIT,
        TcpState.FIN_WAIT2,
        TcpState.CLOSE_WAIT,
    }
    assert {one.timer for one in ours} == set(Timer)


# Exact look-ups -----------------------------------------------------------------------------------------------------


@isolated
def test_a_look_up_finds_one_end_and_not_the_listener_once_that_is_gone() -> None:
    for family in LOOPBACK:
        _listener, client, accepted = connected(family)
        local, remote = ends(accepted)
        found = query(local, remote)
        assert found is not None
        assert (found.local, found.remote, found.state) == (local, remote, TcpState.ESTABLISHED)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()  # A reset.
        assert query(local, remote) is None
        assert query(remote, local) is None
        assert [one.state for one in list_sockets() if one.local == local] == [TcpState.LISTEN]


@isolated
def test_an_ipv4_connection_of_a_dual_stack_listener_is_found_by_its_ipv4_ends() -> None:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    client = socket.create_connection(("127.0.0.1", port_of(listener)))
    accepted = listener.accept()[0]
    assert sample_of(accepted).local == Endpoint("127.0.0.1", port_of(listener)) == sample_of(client).remote


@isolated
def test_a_socket_bound_to_a_device_is_found() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    client.connect(listener.getsockname())
    assert sample_of(client).state is TcpState.ESTABLISHED


@isolated
def test_a_socket_keeps_its_cookie_from_request_to_time_wait() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = port_of(listener)
    drop_at_receiver(f"tcp sport {port} tcp flags & syn == syn")
    client = calling(listener)
    local, remote = end(listener.getsockname()), end(client.getsockname())
    with SocketTable() as table:
        request = table.query(local, remote)
        assert request is not None
        assert (request.sample.state, request.sample.inode) == (TcpState.SYN_RECV, 0)
        assert request.sample.timer is Timer.RETRANSMIT
        heal()
        accepted = listener.accept()[0]
        child = table.query(local, remote)
        accepted.close()
        until(lambda: (one := table.query(local, remote)) and one.sample.state is TcpState.FIN_WAIT2)
        orphan = table.query(local, remote)
        client.close()
        until(lambda: (one := table.query(local, remote)) and one.sample.state is TcpState.TIME_WAIT)
        waiting = table.query(local, remote)
    assert child is not None
    assert child.sample.inode
    assert orphan is not None
    assert (orphan.sample.inode, orphan.sample.timer) == (0, Timer.TIME_WAIT)
    assert waiting is not None
    assert waiting.sample.timer is Timer.TIME_WAIT
    assert {request.cookie, child.cookie, orphan.cookie, waiting.cookie} == {request.cookie}


@isolated
def test_a_socket_that_is_only_bound_is_not_listed() -> None:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    assert list_sockets() == []
    bound.listen()
    assert [one.state for one in list_sockets()] == [TcpState.LISTEN]


@isolated
def test_more_sockets_than_one_datagram_holds_are_all_listed() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=400)
    clients = [socket.create_connection(listener.getsockname()) for _ in range(400)]
    listed = {one.local for one in list_sockets()}
    assert listed >= {end(one.getsockname()) for one in clients}


@isolated
def test_an_answer_that_was_left_unread_is_not_taken_for_the_next_one() -> None:
    _listener, client, accepted = connected()
    with SocketTable() as table:
        body = sockets._exact_question(*ends(client), 0)
        header = sockets._NLMSGHDR.pack(16 + len(body), sockets.SOCK_DIAG_BY_FAMILY, sockets.NLM_F_REQUEST, 0xABC, 0)
        table._netlink.send(header + body)
        found = table.query(*ends(accepted))
        assert found is not None
        assert found.sample.local == ends(accepted)[0]


def test_a_kernel_that_cannot_list_sockets_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "TCPDIAG_GETSOCK", 99)
    with pytest.raises(Unsupported, match="does not list TCP sockets"):
        SocketTable()


# Older kernels, cost --------------------------------------------------------------------------------------------------


def test_a_shorter_tcp_info_leaves_what_it_lacks_at_zero() -> None:
    # struct tcp_info of Linux 2.6 ends after tcpi_total_retrans, octet 104.
    info = bytearray(104)
    info[4] = 3
    info[8:12] = (1_632_000).to_bytes(4, "little")
    info[100:104] = (4).to_bytes(4, "little")
    head = bytes([socket.AF_INET, TcpState.ESTABLISHED, Timer.RETRANSMIT, 3]) + bytes(48 + 20)
    attribute = (108).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes(info)
    sample = sockets._decode(head + attribute, at=1.0).sample
    assert (sample.backoff, sample.rto_s, sample.total_retrans) == (3, 1.632, 4)
    assert (sample.not_sent_bytes, sample.peer_window) == (0, 0)


@isolated
def test_a_look_up_costs_less_than_a_fifth_of_a_millisecond() -> None:
    _listener, client, _accepted = connected()
    with SocketTable() as table:
        rounds = 500
        began = time.process_time()
        for _ in range(rounds):
            table.query(*ends(client))
        cost_s = (time.process_time() - began) / rounds
    sys.stdout.write(f"{cost_s * 1e6:.0f} us of CPU per look-up\n")
    assert cost_s < 0.2e-3
