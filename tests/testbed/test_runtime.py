import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.testbed import runtime

KILLED = """
import os
from lab.testbed.runtime import runtime_folder
with runtime_folder() as folder:
    (folder / "control.sock").touch()
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "blackhole-lab"


def killed_owner() -> Path:
    """The folder of a process that was killed while it used it."""
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert done.returncode == -9
    return Path(done.stdout.strip())


def test_a_folder_is_private_and_gone_afterwards(root: Path) -> None:
    with runtime.runtime_folder() as folder, runtime.runtime_folder() as another:
        assert folder.parent == root
        assert folder != another
        assert root.stat().st_mode & 0o777 == folder.stat().st_mode & 0o777 == 0o700
        assert runtime.stale() == []
        assert not runtime.remove_stale(folder)
        assert folder.is_dir()

    assert list(root.iterdir()) == []


def test_what_a_killed_owner_left_is_found_and_removed(root: Path) -> None:
    left = killed_owner()

    with runtime.runtime_folder() as ours:
        assert runtime.stale() == [left]
        assert runtime.remove_stale(left)
        assert not runtime.remove_stale(left)
        assert sorted(root.iterdir()) == [ours, ours.with_name(ours.name + ".lock")]


def test_without_a_runtime_directory_the_users_own_place_in_tmp_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)

    assert runtime.runtime_root() == Path(f"/tmp/blackhole-lab-{os.geteuid()}")


def test_a_place_that_others_can_write_is_refused(root: Path) -> None:
    root.mkdir(mode=0o777)
    root.chmod(0o777)

    with pytest.raises(EnvironmentNotReady, match="not a folder of this user alone"), runtime.runtime_folder():
        pass
    with pytest.raises(EnvironmentNotReady):
        runtime.stale()


def test_a_link_to_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    root.symlink_to(elsewhere)

    with pytest.raises(EnvironmentNotReady), runtime.runtime_folder():
        pass


FORKED = """
import os, time
from lab.testbed.runtime import runtime_folder
with runtime_folder() as folder:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"I run")
        time.sleep(600)
    # Until a fork has run for the first time it holds all that its owner held, whatever it does then.
    os.read(reading, 8)
    print(folder, child, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.usefixtures("root")
def test_a_fork_that_outlives_its_owner_does_not_hold_the_folder() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKED], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder, child = owner.stdout.readline().split()
        try:
            owner.wait()
            assert runtime.stale() == [Path(folder)]
        finally:
            os.kill(int(child), 9)


FORK_ENDS = """
import os, sys
from lab.testbed import runtime
with runtime.runtime_folder() as folder:
    if not os.fork():
        sys.exit()
    os.wait()
    print(folder.is_dir(), runtime.stale())
print(folder.exists())
"""


@pytest.mark.usefixtures("root")
def test_a_forks_end_leaves_its_owners_folder() -> None:
    done = subprocess.run([sys.executable, "-c", FORK_ENDS], stdout=subprocess.PIPE, text=True, check=True)

    assert done.stdout == "True []\nFalse\n"
