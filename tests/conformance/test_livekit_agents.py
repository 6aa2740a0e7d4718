"""livekit-agents as it comes, at either end of the lab's framed TCP: the released host's defects, and an old remote.

Loopback only: what packet loss has to do with it is asked elsewhere.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab.host.machine.commands import Outcome
from lab.host.machine.reasons import EndCause
from lab.host.protocol.messages import (
    AgentState,
    Ask,
    FinalizeSimulation,
    FrameworkInfo,
    GetFrameworkInfo,
    GetSessionState,
    Ping,
    Pong,
    SessionState,
)
from lab.host.shell import transport
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.failures import RequestFailed
from lab.host.shell.host import SessionHost
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import StreamTransport
from tests.engines import do_without

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RELEASES = sorted(path.stem.removeprefix("livekit-agents-") for path in (ROOT / "requirements").glob("livekit-*.lock"))

PROGRAM_S = 60.0
"""Importing livekit-agents takes seconds where several do at once."""

DROPPED_S = 1.0
"""How long a request waits here that is not answered; one that is takes milliseconds."""


@pytest.fixture(params=RELEASES)
def python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment with one release; skipped without, a failure with CI=true."""
    release: str = request.param
    found = ROOT / ".venv" / "livekit-agents" / release / "bin" / "python"
    if not found.exists():
        do_without(f"There is no livekit-agents {release} here; make conformance brings it")
    return found


class Program:
    """One of the programs, and its lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[dict[str, Any]] = []

    async def until(self, event: str) -> dict[str, Any]:
        """Read on until it says this."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PROGRAM_S):
            while line := await self._process.stdout.readline():
                self.said.append(json.loads(line))
                if self.said[-1]["event"] == event:
                    return self.said[-1]
        raise AssertionError(f"it ended without saying {event}, after {self.said}")

    async def do(self, line: str, event: str | None = None) -> None:
        """Tell it a line, and wait for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self.until(event or line)


@contextlib.asynccontextmanager
async def running(python: Path, program: str) -> AsyncIterator[tuple[Program, StreamTransport]]:
    """A program that has connected, and the lab's end of that connection."""
    arrived: asyncio.Future[StreamTransport] = asyncio.get_running_loop().create_future()
    async with transport.listening("127.0.0.1", 0, arrived.set_result) as port:
        argv = (str(python), "-u", str(HERE / "programs" / f"{program}.py"), "127.0.0.1", str(port))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
        try:
            async with asyncio.timeout(PROGRAM_S):
                made = await arrived
            yield Program(process), made
            async with asyncio.timeout(PROGRAM_S):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def outcome(remote: RemoteSession, ask: Ask) -> Outcome:
    with pytest.raises(RequestFailed) as failed:
        await remote.request(ask, timeout_s=DROPPED_S)
    return failed.value.outcome


def test_the_released_host_drops_requests_keeps_a_closed_session_and_tells_nobody(python: Path) -> None:
    async def scenario() -> None:
        async with running(python, "livekit_host") as (program, made):
            remote = RemoteSession(made)
            await program.until("serving")
            asks = (Ping(), GetSessionState(), FinalizeSimulation())
            assert await asyncio.gather(*(outcome(remote, ask) for ask in asks)) == [Outcome.TIMED_OUT] * 3

            await program.do("register")
            framework = await remote.request(GetFrameworkInfo())
            assert isinstance(framework, FrameworkInfo)
            assert framework.sdk == "python"
            assert (await remote.session_state()).agent_state is not AgentState.INITIALIZING

            await program.do("close-session")
            assert await remote.ping() == Pong()
            closed = await remote.session_state()
            assert (type(closed), closed.agent_state) == (SessionState, AgentState.INITIALIZING)
            assert remote.closed is None

            await program.do("close-host", "done")
            async with asyncio.timeout(PROGRAM_S):
                assert await remote.wait_ended() == "the other side ended it"
            await remote.close()

    asyncio.run(scenario())


def test_the_released_remote_is_served_and_ignores_session_closed(python: Path) -> None:
    async def scenario() -> None:
        async with running(python, "livekit_remote") as (program, made):
            host = SessionHost(made)
            agent = ScriptedAgent("s1", "room", {"hi": "hello"})
            # Registered before its first request is read: nothing has run in between.
            host.register_session(agent)
            assert (await program.until("state"))["agent"] == "s1"
            assert (await program.until("answer"))["texts"] == ["hi", "hello"]
            agent.end(EndCause.TASK_COMPLETED)
            await program.do("", "refused")
            assert "no active session" in program.said[-1]["error"]
            await program.until("done")
            assert not [line for line in program.said if line.get("name") == "error"]
            await host.close()

    asyncio.run(scenario())
