import functools
import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from lab.core.socket import SocketOptions, TcpState
from lab.testbed import socket_options as module
from lab.testbed.socket_options import read_options, socket_options
from lab.testbed.sockets import query
from tests.testbed.isolated import fork, isolated, until
from tests.testbed.test_sockets import connected, end, port_of, sample_of

PROGRAM = """
import ctypes, socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
for name, value in {"TCP_USER_TIMEOUT": 1500, "TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3,
                    "TCP_SYNCNT": 2, "TCP_LINGER2": 7}.items():
    client.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: as a program that holds secrets does.
print(client.getsockname()[1], flush=True)
sys.stdin.read()
client.close()
print("closed", flush=True)
sys.stdin = None
import time
time.sleep(60)
"""
ITS_OPTIONS = SocketOptions(
    user_timeout_s=1.5,
    keepalive=True,
    keepalive_idle_s=10.0,
    keepalive_interval_s=5.0,
    keepalive_count=3,
    syn_retries=2,
    linger2_s=7.0,
)


def foreign_program(listener: socket.socket) -> tuple[subprocess.Popen[str], int]:
    """A connected program that is not a child's child of this Python's making, and its local port."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(port_of(listener))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    return program, int(program.stdout.readline())


def options_of_a_foreign_program_are_read_and_its_fin_is_not_held_up() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    program, port = foreign_program(listener)
    accepted = listener.accept()[0]
    assert socket_options(port, port_of(listener)) == ITS_OPTIONS
    assert program.stdin is not None
    program.stdin.close()
    until(lambda: sample_of(accepted).state is TcpState.CLOSE_WAIT)
    ends = end(accepted.getpeername()), end(accepted.getsockname())
    until(lambda: (client := query(*ends)) and (client.state, client.inode) == (TcpState.FIN_WAIT2, 0))
    assert socket_options(port, port_of(listener)) is None


@isolated
def test_options_of_a_foreign_program_are_read_and_its_fin_is_not_held_up() -> None:
    options_of_a_foreign_program_are_read_and_its_fin_is_not_held_up()


@functools.partial(isolated, nobody=True)
def test_an_ordinary_user_can_read_them_in_its_own_namespaces() -> None:
    assert Path("/proc/self/uid_map").read_text().split()[1] != "0"
    options_of_a_foreign_program_are_read_and_its_fin_is_not_held_up()


@isolated
def test_where_a_program_set_nothing_the_options_are_the_namespace_s() -> None:
    listener, client, _accepted = connected()
    Path("/proc/sys/net/ipv4/tcp_keepalive_time").write_text("77")
    assert socket_options(port_of(client), port_of(listener)) == SocketOptions(
        keepalive_idle_s=77.0, keepalive_interval_s=75.0, keepalive_count=9, syn_retries=6, linger2_s=60.0
    )
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, -1)
    options = socket_options(port_of(client), port_of(listener))
    assert options is not None
    assert options.linger2_s == 0.0


@isolated
def test_neither_the_program_s_error_nor_its_blocking_mode_is_touched() -> None:
    _listener, client, accepted = connected()
    inode = sample_of(client).inode
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    accepted.close()
    socket.setdefaulttimeout(5)
    assert read_options(inode) is not None
    assert os.get_blocking(client.fileno())
    with pytest.raises(ConnectionResetError):
        client.recv(1)


@isolated
def test_without_rights_over_the_owner_there_is_no_answer() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    _program, port = foreign_program(listener)
    ask = f"""
import json
from dataclasses import asdict
from lab.testbed.socket_options import socket_options
options = socket_options({port}, {port_of(listener)})
print(json.dumps(options and asdict(options)))
"""
    able = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert json.loads(able.stdout) == asdict(ITS_OPTIONS)
    unable = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", ask],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(unable.stdout) is None


@isolated
def test_an_old_kernel_or_a_filter_gives_no_answer() -> None:
    _listener, client, _accepted = connected()
    module.SYS_PIDFD_GETFD = 100_000
    assert read_options(sample_of(client).inode) is None


@isolated
def test_a_proc_of_another_pid_namespace_is_not_believed() -> None:
    _listener, client, _accepted = connected()
    inode = sample_of(client).inode
    reading, writing = os.pipe()

    def elsewhere() -> None:
        script = f"from lab.testbed.socket_options import read_options; print(read_options({inode}))"
        # A new PID namespace with the old one's /proc.
        shown = subprocess.run(["unshare", "--pid", "--fork", sys.executable, "-c", script], capture_output=True)
        os.write(writing, shown.stdout + shown.stderr)

    os.waitpid(fork(elsewhere), 0)
    assert os.read(reading, 4096) == b"None\n"


def test_an_orphan_has_no_owner() -> None:
    assert read_options(0) is None
