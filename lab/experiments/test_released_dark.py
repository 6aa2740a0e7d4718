"""Question: what becomes of a live session that is released while its path is dark?

Topology::

    application ---- router --x-- session server

The application lets go of its session 50 ms after the cut and keeps the stream of responses. The lab's session writes
a close frame with FIN into the hole, waits 2 s for the answer, and lets go of its socket; from there on the kernel is
alone.

Prediction: the responses end at the release, whether or not anything arrives, and so does what the socket can send:
FIN_WAIT1. It is let go of 2 s later, an orphan then, by ``tcp_orphan_retries``: four retries are some 4 s, on Linux as
it comes over 100 s (``test_orphans.py``). The server is not told before the path is back, and if it comes back after
the orphan's end, never: the session counts against its limit until the silence limit. As published nothing is sent at
all, so that the kernel has nothing to give up on.

Look at: ``detach`` in ``server.log``, and ``status`` there: the server's own count, asked for at the end;
``finished`` in ``client.log``; ``left.pcapng``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.core.prediction import State
from lab.experiments.common import FAST, PROMPT_S, each_in_both, heard, next_copy, sysctls, within
from lab.experiments.programs import lines, orphans, said, states
from lab.live.lifecycle import LAB, PUBLISHED
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.live.lifecycle.websocket import ANSWER_S
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import Action, Program, RunSpec
from lab.study.commands import PORT, Modules

RELEASE_S = 0.05
SAMPLED_S = 0.5
"""How late a socket's state may be seen: two of the sampler's longest waits."""

COUNT_S = 0.5
"""How long before its end a run asks the server."""


def release(variant: str = LAB.name, *, watch_s: float, **changes: object) -> RunSpec:
    """A session that is released into the hole, and a server that is asked at the end what it has."""
    wanted = {"variant": variant, "url": f"ws://server:{PORT}{ENDPOINTS['developer-newer'].path}"}
    fields: dict[str, Any] = {
        "server": Program(("--port", str(PORT)), "lab.live.server"),
        "client": Program((json.dumps(wanted),), "lab.live.lifecycle.releaser"),
        "port": PORT,
        "profile": FAST,
        "sysctls": sysctls({"orphan_retries": 4}),
        "preload": (*Modules().preload, "lab.live.lifecycle"),
        "actions": (Action(RELEASE_S, "client", "release"), Action(watch_s - COUNT_S, "server", "status")),
        "watch_s": watch_s,
        **changes,
    }
    return RunSpec(**fields)


ORPHAN = {
    "dark": release(client_state=State.FIN_WAIT_1, watch_s=6.0),
    "healed-too-late": release(client_state=State.FIN_WAIT_1, heal_after_s=8.0, watch_s=10.0),
}
HEALED = {
    "during-the-close": release(heal_after_s=1.0, writes_on=False, watch_s=4.0),
    "during-the-orphan": release(
        heal_after_s=3.0, writes_on=False, watch_s=6.0, sysctls=sysctls({"orphan_retries": 8})
    ),
}


def counted(folder: Path) -> tuple[int, set[str]]:
    """What the server had at the end: connections, and the states of its sessions."""
    (last,) = lines(folder, "server", "status")
    return last["connections"], set(last["sessions"].values())


@pytest.mark.parametrize("spec", each_in_both(ORPHAN))
def test_the_application_is_done_at_once_and_the_kernel_goes_on_when_its_socket_is_let_go(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.ORPHAN_RETRIES, spec.name
    released, finished = said(folder, "client", "released")[0], said(folder, "client", "finished")[0]
    assert 0 <= finished - released < PROMPT_S
    seen = next(at for at, state in states(folder) if state == "FIN_WAIT1")
    assert within(seen - released, (0.0, SAMPLED_S))
    assert within(orphans(folder)[0] - released, (ANSWER_S, ANSWER_S + SAMPLED_S))
    assert said(folder, "server", "detach") == []
    assert counted(folder) == (1, {"attached"})


@pytest.mark.parametrize("spec", each_in_both(HEALED))
def test_healed_in_time_the_server_has_the_close_with_the_next_copy(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (detached,) = said(folder, "server", "detach", how="close frame")
    assert heard(detached, next_copy(record)), spec.name
    assert counted(folder)[0] == 0


@pytest.mark.parametrize("spec", each_in_both({"as-published": release(PUBLISHED.name, watch_s=6.0)}))
def test_as_published_nothing_is_sent_and_nobody_is_ever_told(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.first_lost_s is None, spec.name
    assert said(folder, "client", "released")
    assert said(folder, "client", "finished") == said(folder, "server", "detach") == []
    assert {state for _, state in states(folder)} == {"ESTABLISHED"}
    assert counted(folder) == (1, {"attached"})
