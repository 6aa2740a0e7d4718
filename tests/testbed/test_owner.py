import os
import subprocess
from pathlib import Path

import pytest

from lab.testbed.owner import has_ended, identity, own_identity


def test_a_living_process_has_not_ended() -> None:
    assert own_identity() == identity(os.getpid())
    assert not has_ended(own_identity())


def test_a_process_has_ended_once_it_is_dead_reaped_or_not() -> None:
    process = subprocess.Popen(["sleep", "60"])
    name = identity(process.pid)
    assert not has_ended(name)

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(name)
    process.wait()
    assert has_ended(name)
    with pytest.raises(ProcessLookupError):
        identity(process.pid)


def test_a_recycled_id_is_another_process() -> None:
    pid, started, namespace = own_identity().split(":")

    assert has_ended(f"{pid}:{int(started) - 1}:{namespace}")


@pytest.mark.parametrize("name", ["", "7", "7:8", "x:8:9", "1:8:{other}"])
def test_what_cannot_be_told_from_here_counts_as_alive(name: str) -> None:
    other = Path("/proc/self/ns/pid").stat().st_ino + 1

    assert not has_ended(name.format(other=other))
