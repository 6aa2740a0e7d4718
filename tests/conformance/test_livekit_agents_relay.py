"""livekit-agents as it comes, at both ends: its host and its remote, joined by the lab's relay.

Both connect, so neither can serve the other. The relay is ``python -m lab.host relay``; where a path goes dark, one end
is in the client node, the other one beside the relay in the server node, and each test is a whole run of the lab::

    remote ---- router --x-- relay ---- host          host ---- router --x-- relay ---- remote

The released remote has no watchdog, and the relay none either: each of the two connections has a fate of its own, which
its two kernels know, and the relay carries an end over to the other.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab.core.profiles import PROFILES
from lab.core.verdict import DATED_WITHIN_S
from lab.experiments.common import PROMPT_S, within
from lab.experiments.programs import lines, said
from lab.report.record import Cause, EndObservation, Outcome, Record
from lab.run.backend import opener
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from tests.conformance.test_livekit_agents import DROPPED_S, HERE, PROGRAM_S, python
from tests.conformance.test_livekit_agents import Program as Running
from tests.conformance.test_livekit_agents_dark import HEALED_S, REGISTERED_S, TOLD_S

__all__ = ["python"]

PORTS = {"host": 8770, "remote": 8771}
CLOSED = "remote session transport closed"
"""What the released remote raises once its transport has ended."""

OWN_S = 2.0
"""A time-out that the application gives a request: over before any kernel gives up."""

LATER_S = 8.0
"""After the kernels' give-up, which is predicted for 6.6 to 6.8 s after a send; each record has its own window."""

WATCH_S = 9.0
INITIALIZING = 0
"""``AS_INITIALIZING``: what a closed session says of itself."""


def argv(python: Path, program: str, address: str, port: int) -> tuple[str, ...]:
    return (str(python), "-u", str(HERE / "programs" / f"{program}.py"), address, str(port))


@contextlib.asynccontextmanager
async def started(*command: str) -> AsyncIterator[Running]:
    """A program that comes to its own end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield Running(process)
        async with asyncio.timeout(PROGRAM_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_both_ends_as_released_show_the_published_defects(python: Path) -> None:
    """On a path without loss.

    Prediction: a request without a session is dropped, so that it waits out its time-out; after a session's end the
    host answers from the closed one, and nobody is told; the host's own end is the transport's, whatever waits fails.
    """

    async def scenario() -> None:
        free = ("--host-port", "0", "--remote-port", "0")
        async with started(sys.executable, "-m", "lab.host", "relay", *free) as relay:
            ports = await relay.until("listening")
            commands = [
                argv(python, name, "127.0.0.1", ports[side])
                for name, side in (("livekit_host", "host"), ("livekit_asker", "remote"))
            ]
            async with started(*commands[0]) as host, started(*commands[1]) as remote:
                await host.until("serving")
                await relay.until("joined")
                await play(host, remote)
            closed = await relay.until("closed")
        assert min(closed["from_host"], closed["from_remote"]) > 0
        assert [line["side"] for line in relay.said if line["event"] == "ended"] == ["host", "remote"]

    asyncio.run(scenario())


async def play(host: Running, remote: Running) -> None:
    await remote.do("state", "asked")
    for ask in ("io", "finalize"):
        failed = await answered(remote, f"{ask} {DROPPED_S:g}", "failed")
        assert (failed["ask"], failed["why"]) == (ask, "TimeoutError")
        assert failed["after_s"] >= DROPPED_S
    assert "answered" not in events(remote), "nor has the first one been"

    await host.do("register")
    state = await answered(remote, "state", "answered")
    assert state["agent_state"] != INITIALIZING
    heard = events(remote).count("came")

    await host.do("close-session")
    state = await answered(remote, "state", "answered")
    assert state["agent_state"] == INITIALIZING
    assert events(remote).count("came") == heard, "nobody told the remote"

    await host.do("close-host", "done")
    failed = await remote.until("failed")
    assert (failed["ask"], failed["error"]) == ("state", CLOSED)
    assert failed["after_s"] > 2 * DROPPED_S, "the first one, which was dropped"
    assert (await answered(remote, "state", "failed"))["error"] == CLOSED
    await remote.do("close", "done")


async def answered(remote: Running, line: str, event: str) -> dict[str, Any]:
    await remote.do(line, event)
    return remote.said[-1]


def events(program: Running) -> list[str]:
    return [line["event"] for line in program.said]


def run(python: Path, far: str, near: str, out: Path, *actions: Action, **changes: object) -> Record:
    """One end in the client node, the other one beside the relay.

    Args:
        python: With livekit-agents.
        far: host or remote: which end is in the client node.
        near: The other one.
        out: The run's folder.
        actions: Beside those that start a session and ask for its state while the path is healthy.
        changes: Of the run.
    """
    programs = {"host": "livekit_host", "remote": "livekit_asker"}
    relay = ("relay", "--host", "server", "--host-port", str(PORTS["host"]), "--remote-port", str(PORTS["remote"]))
    nodes = {far: "client", near: "server"}
    healthy = (Action(-REGISTERED_S, nodes["host"], "register"), Action(-1.0, nodes["remote"], "state"))
    fields: dict[str, object] = {
        "name": f"relay-{far}",
        "server": Program((*relay, "--", *argv(python, programs[near], "server", PORTS[near])), "lab.host"),
        "client": Program(argv(python, programs[far], "server", PORTS[far])),
        "port": PORTS[far],
        "profile": PROFILES["fast"],
        "actions": (*healthy, *actions),
        "talks": False,
        "cut_after_s": REGISTERED_S + 0.5,
        "watch_s": WATCH_S,
        **changes,
    }
    spec = RunSpec(**fields)  # type: ignore[arg-type]  # names and types are RunSpec's own
    record = Run(spec, opener("netns"), out=out).execute()
    assert record.outcome is Outcome.CONFIRMED, record.reason
    (before,) = [one for one in lines(out, nodes["remote"], "answered") if one["t"] < 0]
    assert before["agent_state"] != INITIALIZING, "it was a session whose path went dark"
    return record


def given_up(end: EndObservation) -> float:
    """When its kernel gave up; that it was in its window is a check of the record's own."""
    assert end.cause is Cause.RETRIES2
    assert end.gave_up_s is not None
    return end.gave_up_s


@pytest.mark.slow
def test_dark_before_the_relay_each_end_learns_from_another_kernel(python: Path, tmp_path: Path) -> None:
    """Remote in the client node; it asks into the hole, and the host has something to tell.

    Prediction: the request ends with the give-up of the remote's own kernel (``tcp_retries2``: 6.6 to 6.8 s after the
    send), and any later one fails at once. The host's connection is on loopback and loses nothing: what it tells is
    acknowledged, by the relay's kernel. That one gives up in the same way, 6.6 to 6.8 s after the host's words, the
    relay resets the host's side, and the released host tells nobody: its transport has ended, its session goes on.
    """
    out = tmp_path / "run"
    record = run(
        python, "remote", "host", out,
        Action(0.05, "server", "hand-over"), Action(0.1, "client", "state"),
        Action(LATER_S, "server", "close-session"), Action(LATER_S, "client", "state"),
    )  # fmt: skip

    gone = given_up(record.observation.client)
    failed, later = lines(out, "client", "failed")
    assert within(failed["t"], (gone, gone + TOLD_S), DATED_WITHIN_S)
    assert (failed["error"], later["error"]) == (CLOSED, CLOSED)
    assert later["after_s"] < PROMPT_S

    gone = given_up(record.observation.server)
    (error,) = lines(out, "server", "error")
    assert (error["side"], error["errno"]) == ("remote", "ETIMEDOUT")
    assert within(error["t"], (gone, gone), PROMPT_S)
    (told,) = said(out, "server", "nothing_more")
    assert within(told, (error["t"], error["t"] + TOLD_S))
    assert within(said(out, "server", "close-session")[0], (LATER_S, LATER_S + TOLD_S)), "as if nothing had happened"


@pytest.mark.slow
def test_dark_before_the_relay_a_host_that_says_nothing_is_never_told(python: Path, tmp_path: Path) -> None:
    """Remote in the client node; it asks into the hole, and the host's session is closed, which it tells nobody.

    Prediction: the remote's kernel gives up as before. The relay has nothing to send, its kernel nothing to resend: the
    host's side stays as it is.
    """
    out = tmp_path / "run"
    record = run(
        python, "remote", "host", out,
        Action(0.05, "server", "close-session"), Action(0.1, "client", "state"),
    )  # fmt: skip

    gone = given_up(record.observation.client)
    (failed,) = lines(out, "client", "failed")
    assert within(failed["t"], (gone, gone + TOLD_S), DATED_WITHIN_S)
    assert record.observation.server.gave_up_s is None
    assert said(out, "server", "error") == said(out, "server", "ended") == said(out, "server", "nothing_more") == []


@pytest.mark.slow
def test_dark_behind_the_relay_a_healthy_connection_hides_the_silence(python: Path, tmp_path: Path) -> None:
    """Host in the client node; the remote beside the relay asks, with a time-out of its own and without.

    Prediction: the remote's kernel has its octets acknowledged at once, so that no setting of its own can tell it. Its
    request ends with its own time-out, or with the give-up of the relay's kernel, 6.6 to 6.8 s after the send,
    whichever is first: the relay resets its side then. The host says nothing, and is never told.
    """
    out = tmp_path / "run"
    record = run(
        python, "host", "remote", out,
        Action(0.05, "server", "state"), Action(0.05, "server", f"io {OWN_S:g}"),
    )  # fmt: skip

    gone = given_up(record.observation.server)
    own, state = lines(out, "server", "failed")
    assert (own["ask"], own["why"]) == ("io", "TimeoutError")
    assert within(own["after_s"], (OWN_S, OWN_S + TOLD_S))
    (error,) = lines(out, "server", "error")
    assert (error["side"], error["errno"]) == ("host", "ETIMEDOUT")
    assert within(error["t"], (gone, gone), PROMPT_S)
    assert (state["ask"], state["error"]) == ("state", CLOSED)
    assert within(state["t"], (error["t"], error["t"] + TOLD_S))
    assert said(out, "client", "nothing_more") == []


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_healed_in_time_the_answer_is_late_and_still_nobody_is_told(python: Path, tmp_path: Path, ipv6: bool) -> None:
    """Remote in the client node; the session is closed while the path is dark, the remote asks, the path heals at 1 s.

    Prediction: the request passes with the next copy, and is answered by the closed session: late, not lost. The
    released host sends no event of the session's end, so none can arrive.
    """
    out = tmp_path / "run"
    record = run(
        python, "remote", "host", out,
        Action(0.05, "server", "close-session"), Action(0.1, "client", "state"),
        heal_after_s=HEALED_S, watch_s=4.0, ipv6=ipv6,
    )  # fmt: skip

    copy = next(at for at in record.observation.client.copy_times_s if at > HEALED_S)
    late = lines(out, "client", "answered")[-1]
    assert within(late["t"], (copy, copy + TOLD_S))
    assert late["agent_state"] == INITIALIZING
    assert [one for one in said(out, "client", "came") if one > 0] == []
    assert said(out, "server", "error") == said(out, "server", "nothing_more") == []
