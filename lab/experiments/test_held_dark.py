"""Question: what is told to whoever holds a live session, when its path goes dark?

Topology::

    application ---- router --x-- session server

The application holds its session, and 50 ms after the cut does one thing with it: nothing, a send, a close, a resume.
Or it has its connection watched.

Prediction: held and idle, nothing is sent, and nobody is ever told. A send returns at once, since the kernel took it;
the reader is told when that gives up (``tcp_retries2``), with its reason. A close returns after the 2 s that an answer
is awaited, and leaves an orphan. A resume closes first, and comes by a path of its own: the server refuses it, having
heard of no end, and reader and caller are told. A watchdog tells 1.5 to 2.0 s after the cut, whatever is done; its
connection is an orphan from then on. If the path comes back while there is an orphan, the server hears from it with its
next copy, answers, is told by the RST that this gets, and lets the session be resumed.

Look at: ``told``, ``closed`` and ``failed`` in ``client.log``; ``detach`` and ``status`` in ``server.log``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.core.prediction import State
from lab.experiments.common import PROMPT_S, each, heard, next_copy, sysctls, within
from lab.experiments.programs import lines, orphans, said, states
from lab.experiments.test_released_dark import COUNT_S, SAMPLED_S, counted, release
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.live.lifecycle.websocket import ANSWER_S
from lab.live.recovery.liveness import Patience
from lab.live.session.profile import DEFAULT
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import Action, Program, RunSpec
from lab.study.commands import PORT

DOES_S = 0.05
AGAIN_S = 6.0
"""Long after the heal: a server that saw no close frame lets a session settle for a second."""

PATIENCE = Patience()
NOTICED_S = (PATIENCE.lost_after_s - PATIENCE.ping_every_s, PATIENCE.lost_after_s)
"""A watchdog's, from the cut: its last pong came up to one interval before."""


def held(*does: tuple[float, str], watch: bool = False, watch_s: float = 9.0, **changes: Any) -> RunSpec:
    """A session that is held, and a server that is asked at the end what it has."""
    wanted = {"watch": watch, "url": f"ws://server:{PORT}{ENDPOINTS['developer-newer'].path}"}
    actions = (
        *(Action(at_s, "client", what) for at_s, what in does),
        Action(watch_s - COUNT_S, "server", "status"),
    )
    client = Program((json.dumps(wanted),), "lab.live.lifecycle.holder")
    return release(watch_s=watch_s, client=client, actions=actions, **changes)


IDLE = {"idle": held(watch_s=6.0)}
SENDING = {"sending": held((DOES_S, "send"), writes_on=False)}
CLOSING = {
    "closing": held((DOES_S, "close"), client_state=State.FIN_WAIT_1, watch_s=6.0),
    "resuming": held((DOES_S, "resume"), client_state=State.FIN_WAIT_1, watch_s=6.0),
}
WATCHED = {"watched": held(watch=True, client_state=State.FIN_WAIT_1, watch_s=7.0)}
BACK = {
    "watched-and-healed": held(
        (AGAIN_S, "resume"),
        watch=True,
        heal_after_s=3.0,
        writes_on=False,
        sysctls=sysctls({"orphan_retries": 8}),
    )
}


@pytest.mark.parametrize("spec", each(IDLE))
def test_held_and_idle_nobody_is_ever_told(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.first_lost_s is None, spec.name
    assert (
        said(folder, "client", "told") == said(folder, "client", "finished") == said(folder, "server", "detach") == []
    )
    assert {state for _, state in states(folder)} == {"ESTABLISHED"}
    assert counted(folder) == (1, {"attached"})


@pytest.mark.parametrize("spec", each(SENDING))
def test_a_send_returns_at_once_and_the_reader_is_told_when_the_kernel_gives_up(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    gave_up_s = record.observation.client.gave_up_s
    assert gave_up_s is not None, spec.name
    assert said(folder, "client", "sent")[0] - said(folder, "client", "asked")[0] < PROMPT_S
    (told,) = lines(folder, "client", "told", kind="ConnectionLost")
    assert within(told["t"], (gave_up_s, gave_up_s), PROMPT_S)
    assert "ETIMEDOUT" in told["error"]
    assert counted(folder) == (1, {"attached"})


@pytest.mark.parametrize("spec", each(CLOSING))
def test_a_close_waits_for_its_answer_and_leaves_an_orphan_and_a_resume_is_refused_after_it(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.ORPHAN_RETRIES
    (asked,) = said(folder, "client", "asked")
    assert within(orphans(folder)[0] - asked, (ANSWER_S, ANSWER_S + SAMPLED_S))
    if spec.name == "closing":
        assert within(said(folder, "client", "closed")[0] - asked, (ANSWER_S, ANSWER_S + PROMPT_S))
        assert said(folder, "client", "told") == said(folder, "client", "finished") == []
    else:
        (failed,) = lines(folder, "client", "failed", kind="SetupRefused")
        shortest_s, longest_s = DEFAULT.refusal_s
        assert within(failed["t"] - asked, (ANSWER_S + shortest_s, ANSWER_S + longest_s + PROMPT_S))
        assert "resume() again later" in failed["error"]
        assert len(said(folder, "client", "told", kind="SetupRefused")) == 1
    assert counted(folder) == (1, {"attached"})


@pytest.mark.parametrize("spec", each(WATCHED))
def test_a_watchdog_tells_within_two_seconds_and_its_connection_is_an_orphan(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.ORPHAN_RETRIES, spec.name
    (told,) = lines(folder, "client", "told", kind="ConnectionLost")
    assert within(told["t"], NOTICED_S, PROMPT_S)
    assert "not even a pong" in told["error"]
    assert within(orphans(folder)[0] - told["t"], (0.0, SAMPLED_S))
    assert counted(folder) == (1, {"attached"})


@pytest.mark.parametrize("spec", each(BACK))
def test_a_path_that_comes_back_in_time_tells_the_server_and_the_session_is_resumed(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (detached,) = said(folder, "server", "detach", how="RST")
    assert heard(detached, next_copy(record)), spec.name
    assert len(said(folder, "client", "resumed")) == 1
    assert counted(folder) == (1, {"attached"})
