"""Question: who learns of a session's end, and of a simulation's, when the host's path goes dark?

Topology::

    simulator (RemoteSession) ---- router --x-- job (SessionHost)         framed TCP

The agent ends its session 50 ms after the cut: ``session_closed`` goes into the hole, and the job shuts down, which
under a simulation waits for the simulator.

Prediction: a remote with a watchdog (a ping after 0.5 s of silence, 2 s for the answer) knows 2 to 2.5 s after the cut.
Without one, as released, it knows when its own kernel gives up on a request (``tcp_retries2``: 6.5 to 6.9 s after the
send), or never if it asks nothing. The job is told by its kernel in the same way, which counts as the simulator's
leaving, unless its ``session_end_timeout`` is over first. A verdict that goes into the hole counts as delivered, since
the kernel took it: the job shuts down at once, its kernel goes on as an orphan, the simulator waits out its request.
Healed before the give-up, all of it arrives with the next copy; after it, the first request is answered by a RST.

Look at: ``told``, ``ended`` and ``finalized`` in ``client.log``; ``done`` and ``room_deleted`` in ``server.log``; in
both ``status``: what remote and job have themselves, when they are asked.
"""

from pathlib import Path
from typing import Any

import pytest

from lab.core.prediction import State
from lab.experiments.common import FAST, PROMPT_S, each_in_both, sysctls, within
from lab.experiments.programs import lines, said
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import Action, Program, RunSpec
from lab.run.trigger import LineTrigger

PORT = 8770
JOB = ("job", "--host", "server", "--port", str(PORT), "--by-hand")
SIMULATOR = ("simulator", "server", str(PORT), "--turn", "book it", "--by-hand")
WATCH = ("--watch", "0.5", "2.0")
END_S = 0.05
ENDS = (Action(END_S, "server", "end"),)
JUDGING_S = 2.0
"""Longer than a cut may take that follows a line: it waits until the captures have run for a second."""

SHUTDOWN_S = 2.5
SILENT_S = 8.0
"""Longer than any kernel here goes on."""


def call(*simulator: str, job: tuple[str, ...] = (), **changes: object) -> RunSpec:
    """A simulated call whose path goes dark, and whose agent then ends it."""
    fields: dict[str, Any] = {
        "server": Program((*JOB, *job), "lab.host"),
        "client": Program((*SIMULATOR, *simulator), "lab.host"),
        "port": PORT,
        "profile": FAST,
        "preload": ("lab.host.programs.main",),
        "actions": ENDS,
        **changes,
    }
    return RunSpec(**fields)


AWAITS = ("--await-close",)
DARK = {
    "watchdog": call(*AWAITS, *WATCH),
    "silent": call(
        *AWAITS,
        actions=(*ENDS, Action(5.0, "server", "status"), Action(SILENT_S - 0.5, "client", "status")),
        watch_s=SILENT_S,
    ),
    "asking": call(*AWAITS, actions=(*ENDS, Action(0.1, "client", "are you there?"))),
}
HEALED = {"healed": call(*AWAITS, heal_after_s=1.0, watch_s=6.0, writes_on=False)}
TOO_LATE = {
    "healed-too-late": call(
        *AWAITS,
        actions=(*ENDS, Action(8.5, "client", "status"), Action(9.0, "client", "are you there?")),
        heal_after_s=8.0,
        watch_s=11.0,
    )
}
TIMEOUT = {
    "gone": call(
        *AWAITS, job=("--session-end-timeout", "2"), server_state=State.FIN_WAIT_1,
        sysctls=sysctls(server={"orphan_retries": 4}), watch_s=6.0,
        actions=(*ENDS, Action(1.5, "server", "status"), Action(5.5, "client", "status")),
    ),
}  # fmt: skip
VERDICT: dict[str, Any] = {
    "cut_when": LineTrigger("server", '"event": "judging"'),
    "job": ("--judging", f"{JUDGING_S:g}"),
    "actions": (Action(SHUTDOWN_S, "server", "shutdown"),),
    "server_state": State.FIN_WAIT_1,
    "sysctls": sysctls(server={"orphan_retries": 4}),
}
REPLY_LOST = {"reply-lost": call("--timeout", "4", **VERDICT)}
REPLY_HEALED = {"reply-healed": call("--timeout", "8", **VERDICT, heal_after_s=3.0, watch_s=7.0)}


def status(folder: Path, end: str) -> dict[str, Any]:
    """What an end had when it was asked."""
    (told,) = lines(folder, end, "status")
    return told


def knows_nothing(folder: Path) -> bool:
    """Whether the remote, when it was asked, had heard neither of the session's end nor of the transport's."""
    asked = status(folder, "client")
    return asked["told"] is asked["ended"] is None


def ends_in_the_dark(folder: Path) -> bool:
    """Whether the session ended when it was told to: there is something that the remote is not told of."""
    (at,) = said(folder, "server", "session_closed")
    return within(at, (END_S, END_S), PROMPT_S)


def given_up(record: Record, end: str) -> float:
    """When that end's kernel gave up, for the reason that was predicted."""
    observed = getattr(record.observation, end)
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert observed.cause is Cause.RETRIES2
    return float(observed.gave_up_s)


def first_copy(record: Record) -> float:
    """When the host's first copy after the heal left; that it came in its window is a check of the record's own."""
    return next(at for at in record.observation.server.copy_times_s if at > (record.fault.healed_s or 0))


@pytest.mark.parametrize("spec", each_in_both({"watchdog": DARK["watchdog"]}))
def test_a_watchdog_knows_within_two_and_a_half_seconds(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (ended,) = lines(folder, "client", "ended")
    assert within(ended["t"], (2.0, 2.5), PROMPT_S), spec.name
    assert "nothing came" in ended["by"]
    assert ends_in_the_dark(folder)
    assert said(folder, "client", "told") == []
    (finalized,) = lines(folder, "client", "finalized")
    assert (finalized["outcome"], finalized["asked_s"] < PROMPT_S) == ("lost", True)


@pytest.mark.parametrize("spec", each_in_both({"silent": DARK["silent"]}))
def test_without_one_a_remote_that_asks_nothing_never_knows(spec: RunSpec, record: Record, folder: Path) -> None:
    """The job is told by its kernel, long before its time-out of a minute, and deletes the room once."""
    gone = given_up(record, "server")
    assert said(folder, "client", "told") == said(folder, "client", "ended") == [], spec.name
    assert knows_nothing(folder)
    assert status(folder, "server").items() >= {"job": "serving", "host": "empty", "session": None}.items()
    for event in ("room_deleted", "done"):
        (at,) = said(folder, "server", event)
        assert within(at, (gone, gone), PROMPT_S)


@pytest.mark.parametrize("spec", each_in_both({"asking": DARK["asking"]}))
def test_without_one_a_request_ends_with_the_kernels_give_up(spec: RunSpec, record: Record, folder: Path) -> None:
    gone = given_up(record, "client")
    (ended,) = lines(folder, "client", "ended")
    assert within(ended["t"], (gone, gone), PROMPT_S), spec.name
    assert "timed out" in ended["by"]
    assert [one["outcome"] for one in lines(folder, "client", "failed")] == ["lost"]
    assert ends_in_the_dark(folder)
    assert said(folder, "client", "told") == []


@pytest.mark.parametrize("spec", each_in_both(HEALED))
def test_healed_in_time_the_end_is_told_with_the_next_copy(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (told,) = lines(folder, "client", "told")
    assert 0 <= told["t"] - first_copy(record) < PROMPT_S, spec.name
    assert told["reason"] == "USER_INITIATED"
    (finalized,) = lines(folder, "client", "finalized")
    assert (finalized["outcome"], finalized["verdict"]["success"]) == ("answered", True)
    assert len(said(folder, "server", "room_deleted")) == len(said(folder, "server", "done")) == 1


@pytest.mark.parametrize("spec", each_in_both(TOO_LATE))
def test_healed_too_late_the_first_request_is_answered_by_a_reset(spec: RunSpec, record: Record, folder: Path) -> None:
    given_up(record, "server")
    (ended,) = lines(folder, "client", "ended")
    assert within(ended["t"], (9.0, 9.0), PROMPT_S), spec.name
    assert "reset" in ended["by"]
    assert ends_in_the_dark(folder)
    assert said(folder, "client", "told") == []
    assert knows_nothing(folder)


@pytest.mark.parametrize("spec", each_in_both(TIMEOUT))
def test_a_simulator_that_is_gone_is_waited_for_until_the_time_out(spec: RunSpec, record: Record, folder: Path) -> None:
    """And its host's kernel goes on alone."""
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.server.cause is Cause.ORPHAN_RETRIES, spec.name
    (done,) = said(folder, "server", "done")
    assert within(done, (END_S + 2.0, END_S + 2.0), PROMPT_S)
    assert len(said(folder, "server", "room_deleted")) == 1
    assert said(folder, "client", "told") == said(folder, "client", "ended") == []
    assert knows_nothing(folder)
    assert status(folder, "server").items() >= {"job": "serving", "host": "empty", "session": None}.items()


@pytest.mark.parametrize("spec", each_in_both(REPLY_LOST))
def test_a_lost_verdict_holds_up_nobody_but_the_simulator(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.server.cause is Cause.ORPHAN_RETRIES, spec.name
    (done,) = lines(folder, "server", "done")
    assert within(done["t"], (SHUTDOWN_S, SHUTDOWN_S), PROMPT_S)
    assert done["verdict_taken"]
    (finalized,) = lines(folder, "client", "finalized")
    assert finalized["outcome"] == "timed out"
    assert within(finalized["asked_s"], (4.0, 4.0), PROMPT_S)


@pytest.mark.parametrize("spec", each_in_both(REPLY_HEALED))
def test_a_lost_verdict_comes_with_the_next_copy(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (finalized,) = lines(folder, "client", "finalized")
    assert (finalized["outcome"], finalized["verdict"]["success"]) == ("answered", True), spec.name
    assert 0 <= finalized["t"] - first_copy(record) < PROMPT_S
