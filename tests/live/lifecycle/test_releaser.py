"""A program that drops its session, of which the server and the reader of the responses see the end."""

import asyncio
import json
import subprocess
import sys

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, ClosedHere, Stream
from lab.live.lifecycle.releaser import _read
from lab.live.protocol.messages import ServerMessage
from tests.live.lifecycle.scenes import noting

DEADLINE_S = 20.0


async def started(url: str, variant: str) -> asyncio.subprocess.Process:
    """The program, connected."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lab.live.lifecycle.releaser", json.dumps({"variant": variant, "url": url})),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert await heard(program) == "connected"
    assert program.stdin is not None
    program.stdin.write(b"release\n")
    assert await heard(program) == "released"
    return program


async def heard(program: asyncio.subprocess.Process) -> str:
    assert program.stdout is not None
    event: str = json.loads(await program.stdout.readline())["event"]
    return event


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_responses_that_end_in_an_error_have_not_finished(end: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Who looks for a normal end would take them for one."""
    responses: Stream[ServerMessage] = Stream()
    if end == "failed":
        responses.fail(lambda: ClosedHere("closed here"))
    responses.finish()
    asyncio.run(_read(responses))

    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == [end]


@pytest.mark.parametrize(("variant", "code"), [(LAB.name, 1000), (PUBLISHED.name, 1006)])
def test_the_labs_says_goodbye_and_the_published_one_stays_until_the_program_ends(variant: str, code: int) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S), noting() as (url, codes):
            program = await started(url, variant)
            if variant == LAB.name:
                assert await heard(program) == "finished"
                assert await codes.get() == code
            out, _ = await program.communicate(b"")
            assert out == b"", "as published nobody is told"
            if variant != LAB.name:
                assert await codes.get() == code
            assert program.returncode == 0

    asyncio.run(scenario())
