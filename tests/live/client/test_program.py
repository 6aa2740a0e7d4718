import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.live.client.fake import FakeServer, serving

DEADLINE_S = 20.0


class Program:
    """The assistant as a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def until(self, event: str) -> Mapping[str, Any]:
        """Its next event of this name."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            if (said := json.loads(line))["event"] == event:
                assert isinstance(said, dict)
                return said
        raise AssertionError(f"It ended without {event}.")

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word.encode() + b"\n")

    async def ended(self) -> tuple[int, str]:
        """Its exit status and what it said to people."""
        assert self.process.stderr is not None
        said = (await self.process.stderr.read()).decode()
        return await self.process.wait(), said


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Program]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "lab.live.client", *arguments), stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_at_its_end_it_waits_for_quit_with_its_connection_open() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, running("--url", server.url, "--script", "[]") as program:
            done = await program.until("done")
            program.tell("anything")
            assert (await program.until("told"))["word"] == "anything"
            assert server.closes == []
            program.tell("quit")

            assert done["ok"] is True
            assert await program.ended() == (0, "")

    asyncio.run(scenario())


def test_every_line_has_both_clocks() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server, running("--url", server.url) as program:
            said = await program.until("setup_complete")

            assert abs(said["at"] - said["t"]) < 1e-3
            assert said["attempt"] == 1

    asyncio.run(scenario())


def test_a_script_that_got_stuck_is_exit_status_1() -> None:
    script = '[{"do": "await", "event": "tool_call", "timeout": 0.1}]'

    async def scenario() -> None:
        async with serving(FakeServer()) as server, running("--url", server.url, "--script", script) as program:
            assert (await program.until("done"))["ok"] is False
            program.tell("quit")

            assert (await program.ended())[0] == 1

    asyncio.run(scenario())


def test_quit_ends_a_script_that_is_under_way() -> None:
    script = '[{"do": "watch", "for": 600}]'

    async def scenario() -> None:
        async with serving(FakeServer()) as server, running("--url", server.url, "--script", script) as program:
            await program.until("setup_complete")
            program.tell("quit")

            assert await program.ended() == (1, "")

    asyncio.run(scenario())


def test_it_goes_on_when_nobody_reads_its_lines() -> None:
    script = '[{"do": "watch", "for": 0.2}]'

    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            process = await asyncio.create_subprocess_shell(
                f"{sys.executable} -m lab.live.client --url {server.url} --script '{script}' </dev/null | true",
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await asyncio.wait_for(process.communicate(), DEADLINE_S)

            assert said == b""
            assert server.closes == [None]

    asyncio.run(scenario())


def test_an_interrupt_is_130_without_a_traceback() -> None:
    script = '[{"do": "watch", "for": 600}]'

    async def scenario() -> None:
        async with serving(FakeServer()) as server, running("--url", server.url, "--script", script) as program:
            await program.until("setup_complete")
            program.process.send_signal(signal.SIGINT)

            assert await program.ended() == (130, "")

    asyncio.run(scenario())


def test_a_server_that_is_not_there_is_said_and_no_traceback() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            url = server.url
        async with running("--url", url) as program:
            failed = await program.until("failed")
            program.tell("quit")

            assert failed["error"] == "ECONNREFUSED"
            assert await program.ended() == (1, "")

    asyncio.run(scenario())


def test_a_wrong_option_is_a_sentence_and_exit_status_2() -> None:
    async def scenario() -> None:
        async with running("--script", '[{"do":"say"}]') as program:
            assert await program.ended() == (2, "Step 1 (say) needs the field clip.\n")

    asyncio.run(scenario())
