"""Agents come first where the caller may say so; what they start never does."""

import os
import subprocess
import sys
from pathlib import Path

from lab.testbed.netns import NetnsTestbed

LOOK = "import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))"
ORDINARY = f"{os.SCHED_OTHER} 0"


def may_rise() -> bool:
    code = f"import os; os.sched_setscheduler(0, {os.SCHED_RR}, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_programs_in_nodes_are_ordinary_processes(testbed: NetnsTestbed) -> None:
    program = testbed.client.spawn([sys.executable, "-c", LOOK])

    assert program.wait_for_line(".", 10).text == ORDINARY


def test_the_labs_own_programs_are_ordinary_processes(testbed: NetnsTestbed) -> None:
    server = testbed.server.spawn_module("lab.programs.server", ["5000"])
    server.wait_for_line("listening", 10)

    assert os.sched_getscheduler(server.pid) == os.SCHED_OTHER


def test_an_agent_comes_first_where_its_caller_may_say_so(testbed: NetnsTestbed) -> None:
    program = testbed.client.spawn(["sleep", "60"])

    expected = os.SCHED_RR | os.SCHED_RESET_ON_FORK if may_rise() else os.SCHED_OTHER
    assert os.sched_getscheduler(parent_of(program.pid)) == expected


def test_services_are_ordinary_processes(testbed: NetnsTestbed) -> None:
    assert testbed.router.firewall
    keeper = parent_of(parent_of(testbed.client.spawn(["sleep", "60"]).pid))
    firewalls = [pid for pid in every_process() if name_of(pid) == "lab-firewall" and pids_of(pid) == pids_of(keeper)]

    assert [os.sched_getscheduler(pid) for pid in firewalls] == [os.SCHED_OTHER]


def test_who_runs_niced_stays_behind() -> None:
    code = "import os; from lab.testbed.agent import priority; os.nice(5); priority.rise(); " + LOOK
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == f"{os.SCHED_OTHER} 5"


def test_a_process_that_rose_can_fall() -> None:
    code = "import os; from lab.testbed.agent import priority; priority.rise(); priority.fall(); " + LOOK
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ORDINARY


def every_process() -> list[int]:
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdecimal()]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def pids_of(pid: int) -> str:
    """Its PID namespace."""
    return str(Path(f"/proc/{pid}/ns/pid").readlink())
