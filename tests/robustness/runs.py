"""Short runs, and the processes behind them."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lab.core.errors import LabError
from lab.core.profiles import PROFILES
from lab.core.timeline import Observation
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from lab.testbed.netns import open_testbed
from lab.testbed.owner import own_identity

PORT = 5000
WATCH_S = 1.0


def spec(**changes: Any) -> RunSpec:
    """The demo's flow, watched for a second."""
    fields: dict[str, Any] = {
        "server": Program((str(PORT),), "lab.programs.server"),
        "client": Program(("server", str(PORT), "--idle-after", "1"), "lab.programs.client"),
        "port": PORT,
        "profile": PROFILES["fast"],
        "cut_after_s": 0.3,
        "actions": (Action(0.05, "client", "send"), Action(0.1, "server", "send")),
        "writes_on": False,
        "watch_s": WATCH_S,
        **changes,
    }
    return RunSpec(**fields)


def outcome(
    wanted: RunSpec, out: Path, *, at_cut: Callable[[Run], object] = lambda _: None
) -> tuple[Outcome | type[LabError], str]:
    """What came of a run, or the error that ended it, with the reason.

    Args:
        wanted: What to run.
        out: Its folder.
        at_cut: Called in the calling process as soon as the flow is dark.
    """

    def tell(observation: Observation) -> None:
        if observation.kind == "cut":
            at_cut(run)

    run = Run(wanted, open_testbed, out=out, tell=tell)
    try:
        record = run.execute()
    except LabError as error:
        return type(error), str(error)
    return record.outcome, record.reason or ""


def own_processes(name: str) -> list[int]:
    """The processes of that name behind this process's testbeds."""
    return [pid for pid in _behind_this() if _comm(pid) == name]


def _behind_this() -> Iterator[int]:
    identity = own_identity().encode()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if identity in words and int(process.name) != os.getpid():
                yield int(process.name)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until the condition holds.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} did not come true within {timeout_s:g} s")
        time.sleep(0.01)
