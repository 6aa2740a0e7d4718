"""The whole path as an ordinary user: run as root, these tests become one; otherwise they are one already."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab

PROGRAM = """
import os, sys
from pathlib import Path
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import TestbedSpec

FOLDER = sys.argv[1]
SERVER = "import socket; s = socket.create_server(('', 80)); print('up', flush=True); s.accept()[0].sendall(b'hello')"
CLIENT = "import socket; print(socket.create_connection(('server', 80)).recv(99))"
LOOK = "import os; print(os.getuid(), [line.split()[1] for line in open('/proc/self/status') if line[:6] == 'CapEff'])"

with NetnsTestbed(TestbedSpec(sysctls={"client": {"net.ipv4.tcp_retries2": "5"}})) as testbed:
    server = testbed.server.spawn(["python3", "-c", SERVER])
    server.wait_for_line("up", 10)
    client = testbed.client.spawn(["python3", "-c", CLIENT])
    client.wait(10)
    look = testbed.client.spawn(["python3", "-c", LOOK])
    look.wait(10)
    program = testbed.client.spawn_module("lab_test_connect", env={}, cwd=Path(FOLDER))
    port = int(program.wait_for_line("from", 10).text.split()[1])
    print(testbed.client.socket_options(port, 7000).user_timeout_s)
    print(os.getuid(), [line.text for line in client.lines])
    print([line.text for line in look.lines])
    print(testbed.client.read_sysctl("net.ipv4.tcp_retries2"), os.path.exists(f"/proc/{look.pid}"))
"""


CONNECT = """
import socket, threading
listener = socket.create_server(("localhost", 7000))
connection = socket.create_connection(("localhost", 7000))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1234)
print("from", connection.getsockname()[1], flush=True)
threading.Event().wait()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A module that an ordinary user may read; pytest's own folders are root's."""
    with tempfile.TemporaryDirectory(prefix="rootless-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "lab_test_connect.py").write_text(CONNECT)
        yield folder


def interpreter_for_everyone() -> str:
    """An interpreter that an ordinary user may run; the running one may lie in root's home."""
    candidates = [sys.executable, *filter(None, (shutil.which("python3", path="/usr/bin:/usr/local/bin"),))]
    for candidate in candidates:
        if as_ordinary_user([candidate, "-c", "import sys; assert sys.version_info >= (3, 11)"]).returncode == 0:
            return candidate
    pytest.fail(f"none of {candidates} can be run by an ordinary user")


def as_ordinary_user(argv: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user that holds no privilege."""
    # By way of env: setpriv itself still holds root's capabilities when it executes its argument.
    become = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env"] if os.geteuid() == 0 else []
    path = [str(Path(lab.__file__).parents[1]), *(entry for entry in sys.path if entry.endswith("site-packages"))]
    return subprocess.run(
        [*become, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_an_ordinary_user_gets_a_whole_testbed_and_its_commands_hold_no_privilege(folder: Path) -> None:
    done = as_ordinary_user([interpreter_for_everyone(), "-c", PROGRAM, str(folder)])

    assert done.returncode == 0, done.stderr
    uid = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert done.stdout.splitlines() == [
        "1.234",
        f"""{uid} ["b'hello'"]""",
        f"""["{uid} ['{0:016x}']"]""",
        "5 False",
    ]


def test_a_kernel_without_user_namespaces_is_named_with_the_fix() -> None:
    # A user namespace inside which no other may be made, as user.max_user_namespaces=0 does for a whole machine.
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'
    program = (
        "from lab.testbed.netns import NetnsTestbed\n"
        "try:\n    NetnsTestbed()\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", script, interpreter_for_everyone(), "-c", program]

    done = as_ordinary_user(command)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("EnvironmentNotReady The kernel allows no more user or network namespaces")
    assert "sudo sysctl -w user.max_user_namespaces=15000" in done.stdout
