"""livekit-agents as it comes on a path that goes dark: a remote without a watchdog, and a host that tells nobody.

The lab's job or simulator is at the other end, and each test is a whole run of the lab.
"""

from pathlib import Path

import pytest

from lab.core.profiles import PROFILES
from lab.core.verdict import DATED_WITHIN_S
from lab.experiments.programs import lines, said
from lab.report.record import Cause, Outcome, Record
from lab.run.backend import opener
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from tests.conformance.test_livekit_agents import HERE, python

__all__ = ["python"]

pytestmark = pytest.mark.slow

PORT = 8770
HEALED_S = 1.0
TOLD_S = 0.3
"""From the kernel's give-up to the line that says so, in a program that is not the lab's."""

REGISTERED_S = 5.0
"""Before the cut: for a session to start in livekit-agents."""


def run(client: tuple[Path, str], server: tuple[str, ...], out: Path, *actions: Action, **changes: object) -> Record:
    """One of the programs of this folder against one of the lab's."""
    python, program = client
    fields: dict[str, object] = {
        "name": program,
        "server": Program(server, "lab.host"),
        "client": Program((str(python), "-u", str(HERE / "programs" / f"{program}.py"), "server", str(PORT))),
        "port": PORT,
        "profile": PROFILES["fast"],
        "actions": actions,
        "noticed": '"event": "refused"',
        **changes,
    }
    spec = RunSpec(**fields)  # type: ignore[arg-type]  # names and types are RunSpec's own
    return Run(spec, opener("netns"), out=out).execute()


JOB = ("job", "--host", "server", "--port", str(PORT), "--by-hand")
SIMULATOR = ("simulator", "server", str(PORT), "--listen", "--timeout", "1", "--await-close")
END = Action(0.05, "server", "end")


def test_a_remote_that_asks_nothing_never_knows(python: Path, tmp_path: Path) -> None:
    record = run((python, "livekit_remote"), JOB, tmp_path / "run", END)

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.server.cause is Cause.RETRIES2
    assert record.observation.client.noticed_s is None


def test_a_remotes_request_ends_with_its_kernels_give_up(python: Path, tmp_path: Path) -> None:
    record = run((python, "livekit_remote"), JOB, tmp_path / "run", END, Action(0.1, "client", ""))

    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause is Cause.RETRIES2
    assert end.noticed_s is not None
    assert end.gave_up_s is not None
    # The death is dated by the look that found the socket gone, which may come a little after the program's own line.
    assert -DATED_WITHIN_S <= end.noticed_s - end.gave_up_s < TOLD_S
    assert len(said(tmp_path / "run", "server", "done")) == 1


def test_healed_in_time_a_host_of_the_lab_would_have_told_and_the_released_one_does_not(
    python: Path, tmp_path: Path
) -> None:
    """As ``test_host_dark.py`` has it of the lab's: there the end is told with the next copy."""
    out = tmp_path / "run"
    actions = (Action(-REGISTERED_S, "client", "register"), Action(0.05, "client", "close-session"))
    record = run(
        (python, "livekit_host"), SIMULATOR, out, *actions,
        talks=False, cut_after_s=REGISTERED_S + 0.5, heal_after_s=HEALED_S, watch_s=4.0,
    )  # fmt: skip

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert said(out, "client", "register")[0] < 0
    (closed,) = said(out, "client", "close-session")
    assert closed < HEALED_S, "it closed while the path was dark, as the lab's does"
    assert lines(out, "server", "told") == lines(out, "server", "ended") == []
