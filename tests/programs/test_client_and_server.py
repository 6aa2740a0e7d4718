import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from lab.core.flow import Endpoint
from lab.core.socket import SocketSample, TcpState, Timer
from lab.programs.report import errno_name
from lab.testbed.socket_options import socket_options
from lab.testbed.sockets import query
from tests.programs.program import Program
from tests.testbed.isolated import drop_at_receiver, isolated, until


def pair(server_options: str = "", client_options: str = "", host: str = "127.0.0.1") -> SimpleNamespace:
    """A server and a client that is connected to it."""
    server = Program("server", 0, *server_options.split())
    port = server.wait_for("listening")["port"]
    client = Program("client", host, port, *client_options.split())
    client.wait_for("connected")
    server.wait_for("accepted")
    return SimpleNamespace(server=server, client=client, port=port)


def socket_of(client: Program) -> SocketSample | None:
    connected = client.wait_for("connected")
    return query(Endpoint(*connected["local"]), Endpoint(*connected["remote"]))


def received_by(program: Program) -> int:
    """Octets so far. Not events: one read may bring two lines."""
    received = program.named("received")
    return received[-1]["total"] if received else 0


def cut(port: int) -> None:
    drop_at_receiver(f"tcp dport {port}", f"tcp sport {port}")


@isolated
def test_lines_are_echoed_over_both_families() -> None:
    for host in ("127.0.0.1", "::1"):
        run = pair(client_options="--interval 0.02", host=host)
        run.client.wait_for("received", count=3)
        assert run.client.named("sent")[0]["bytes"] == len("line 1\n")
        assert run.server.named("accepted")[0]["local"] == [host, run.port]
        assert run.server.named("received")[0]["connection"] == 1
        run.client.tell("close")
        assert run.client.wait() == 0
        assert run.server.wait_for("closed")["received"] == run.client.wait_for("closed")["sent"]
        run.server.tell("quit")
        assert run.server.wait() == 0


@isolated
def test_it_idles_after_n_lines_and_obeys() -> None:
    run = pair(client_options="--interval 0.01 --idle-after 2")
    until(lambda: received_by(run.client) == len("line 1\nline 2\n"))
    until(lambda: (one := socket_of(run.client)) is not None and one.timer is Timer.OFF)
    run.client.tell("send")
    until(lambda: received_by(run.server) == len("line 1\nline 2\nline 3\n"))
    assert len(run.client.named("sent")) == 3
    run.client.tell("busy")
    run.client.wait_for("sent", count=6)
    run.server.tell("send")
    until(lambda: run.server.named("sent")[-1]["bytes"] == len("news\n"))
    run.client.tell("quit")
    assert run.client.wait() == 0


@isolated
def test_connect_only_sends_nothing_and_the_options_are_set() -> None:
    options = "--connect-only --bind-port 45678 --user-timeout 1.5 --keepalive 10/5/3 --syncnt 2 --linger2 7"
    run = pair(client_options=options)
    assert run.client.wait_for("connected")["local"] == ["127.0.0.1", 45678]
    set_ = socket_options(45678, run.port)
    assert set_ is not None
    assert (set_.user_timeout_s, set_.keepalive, set_.keepalive_idle_s, set_.keepalive_interval_s) == (1.5, True, 10, 5)
    assert (set_.keepalive_count, set_.syn_retries, set_.linger2_s) == (3, 2, 7)
    run.client.tell("close")
    run.client.wait()
    assert run.client.named("sent") == []


@isolated
def test_the_kernel_s_give_up_is_told_at_once_and_the_next_read_looks_like_a_clean_close() -> None:
    run = pair(client_options="--connect-only --user-timeout 0.7")
    cut(run.port)
    run.client.tell("send")
    sent = run.client.wait_for("sent")
    error = run.client.wait_for("error")
    assert (error["errno"], error["during"], error["second_read"]) == ("ETIMEDOUT", "wait", "")
    assert 0.7 <= error["at"] - sent["at"] < 2.0
    assert run.client.wait() == 1
    assert run.server.named("error") == run.server.named("eof") == []


@isolated
def test_a_reset_is_told() -> None:
    run = pair(client_options="--connect-only", server_options="--no-read --keep-open")
    run.client.tell("send")
    until(lambda: (one := socket_of(run.client)) is not None and one.unacked == 0 and run.client.named("sent"))
    run.server.tell("close")  # With octets unread, a close is a reset (RFC 2525 section 2.17).
    error = run.client.wait_for("error")
    assert (error["errno"], error["second_read"]) == ("ECONNRESET", "")


@isolated
def test_a_server_that_does_not_read_closes_its_window_and_can_open_it_again() -> None:
    run = pair(server_options="--no-read", client_options="--fill 10000000")
    run.client.wait_for("blocked")
    until(lambda: (one := socket_of(run.client)) is not None and one.timer is Timer.PROBE and one.peer_window == 0)
    assert run.server.named("received") == []
    run.server.tell("read")
    until(lambda: sum(one["bytes"] for one in run.server.named("received")) > 100_000)


@isolated
def test_a_silent_server_answers_nothing_and_closes_after_n_octets() -> None:
    run = pair(server_options="--silent --close-after 14", client_options="--interval 0.01")
    assert run.server.wait_for("closed") == run.server.events[-1]
    assert run.client.wait() in (0, 1)  # A line may have been under way: then it is a reset.
    assert run.client.named("received") == []


@isolated
def test_a_server_that_pushes_is_busy_too() -> None:
    run = pair(server_options="--interval 0.02", client_options="--connect-only")
    run.client.wait_for("received", count=3)
    assert run.client.named("sent") == []


@isolated
def test_half_closed_states_can_be_held() -> None:
    run = pair(server_options="--keep-open", client_options="--connect-only")
    run.client.tell("shutdown")
    run.server.wait_for("eof")
    until(lambda: (one := socket_of(run.client)) is not None and one.state is TcpState.FIN_WAIT2)
    run.server.tell("send")
    run.client.wait_for("received")
    run.server.tell("close")
    assert run.client.wait() == 0
    assert run.client.named("eof")


@isolated
def test_connections_are_told_apart() -> None:
    run = pair(client_options="--connect-only")
    bystander = Program("client", "127.0.0.1", run.port, "--interval", 0.02)
    bystander.wait_for("received", count=2)
    assert {one["connection"] for one in run.server.named("received")} == {2}
    assert run.server.wait_for("accepted", count=2)["remote"] == bystander.wait_for("connected")["local"]


@isolated
def test_a_connection_that_cannot_be_set_up_is_an_error_of_connect() -> None:
    refused = Program("client", "127.0.0.1", 1)
    assert refused.wait_for("error")["errno"] == "ECONNREFUSED"
    assert refused.wait() == 1
    drop_at_receiver("tcp dport 2")
    dark = Program("client", "127.0.0.1", 2, "--user-timeout", 1)
    error = dark.wait_for("error")
    assert (error["errno"], error["during"]) == ("ETIMEDOUT", "connect")
    assert error["at"] - dark.wait_for("connecting")["at"] >= 1.0


def test_a_read_time_out_of_python_s_own_has_no_errno() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.01)
        with pytest.raises(TimeoutError) as raised:
            ours.recv(1)
    assert errno_name(raised.value) is None
    assert errno_name(TimeoutError(110, "Connection timed out")) == "ETIMEDOUT"


def test_the_programs_need_the_standard_library_only() -> None:
    began = time.monotonic()
    names = "import sys, lab.programs.client, lab.programs.server; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", names], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert {name for name in ours if not name.startswith(("_", "__"))} == {"lab"}
    assert time.monotonic() - began < 5
