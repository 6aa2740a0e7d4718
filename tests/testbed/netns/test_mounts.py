"""Names and /proc on machines that are not arranged like this one, in a mount namespace of each test's own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from lab.testbed.netns import NetnsTestbed
LOOK = '''
import socket
print(socket.gethostbyname("server"))
print(open("/proc/1/comm").read().strip() == "lab-keeper")
print(open("/etc/resolv.conf").read().strip() or "empty")
'''
with NetnsTestbed() as testbed:
    look = testbed.client.spawn(["/usr/bin/env", "python3", "-c", LOOK])
    look.wait(10)
    print([line.text for line in look.lines], testbed.client.read_sysctl("net.ipv4.tcp_retries2") != "")
    print(open("/etc/resolv.conf").read().strip() if __import__("os").path.exists("/etc/resolv.conf") else "dangling")
"""


def run(prepare: str) -> list[str]:
    """Output of the program on a machine that a shell script has rearranged."""
    script = f'mount --make-rprivate / && {prepare} && exec "$0" "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """A copy of what name resolution needs of /etc."""
    folder = tmp_path / "etc"
    folder.mkdir()
    for name in ("nsswitch.conf", "hosts", "passwd", "group", "ld.so.cache"):
        if Path("/etc", name).exists():
            shutil.copy(f"/etc/{name}", folder / name)
    return folder


def test_a_resolver_file_behind_a_symbolic_link_is_empty_inside_and_kept_outside(etc: Path) -> None:
    target = etc / "stub" / "resolv.conf"
    target.parent.mkdir()
    target.write_text("nameserver 192.0.2.53\n")
    (etc / "resolv.conf").symlink_to("stub/resolv.conf")

    inside, outside = run(f"mount --bind {etc} /etc")

    assert inside == "['198.51.100.20', 'True', 'empty'] True"
    assert outside == "nameserver 192.0.2.53"
    assert target.read_text() == "nameserver 192.0.2.53\n"


def test_names_resolve_where_the_resolver_file_is_a_dangling_link(etc: Path) -> None:
    (etc / "resolv.conf").symlink_to("/run/no/such/resolv.conf")

    inside, outside = run(f"mount --bind {etc} /etc")

    assert inside.startswith("['198.51.100.20', ")
    assert outside == "dangling"


def test_hosts_behind_a_symbolic_link_is_as_good(etc: Path) -> None:
    (etc / "hosts").rename(etc / "hosts.real")
    (etc / "hosts").symlink_to("hosts.real")
    (etc / "resolv.conf").write_text("nameserver 192.0.2.53\n")

    inside, _ = run(f"mount --bind {etc} /etc")

    assert inside == "['198.51.100.20', 'True', 'empty'] True"


def test_where_parts_of_proc_are_masked_the_old_one_is_used() -> None:
    # As in a container: the kernel then refuses a fresh /proc to a user namespace.
    inside, _ = run("mount -t tmpfs none /proc/fs")

    assert inside == "['198.51.100.20', 'False', 'empty'] True"


def test_a_machine_without_a_hosts_file_is_told_the_fix(etc: Path) -> None:
    (etc / "hosts").unlink()

    with pytest.raises(AssertionError, match=r"EnvironmentNotReady.*no /etc/hosts.*Fix: sudo touch /etc/hosts"):
        run(f"mount --bind {etc} /etc")
