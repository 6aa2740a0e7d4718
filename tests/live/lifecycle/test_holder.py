"""A program that holds a session, and says what comes of what it does with it."""

import asyncio
import json
import sys
from typing import Any, NoReturn

import pytest

from lab.live.lifecycle import ClosedHere, LiveSession, Setup
from lab.live.lifecycle.holder import _read
from tests.live.lifecycle.scenes import noting

DEADLINE_S = 20.0
SAID = ("connected", "asked", "sent", "asked", "closed", "asked", "failed")


async def heard(program: asyncio.subprocess.Process) -> dict[str, Any]:
    assert program.stdout is not None
    said: dict[str, Any] = json.loads(await program.stdout.readline())
    return said


@pytest.mark.parametrize("watch", [False, True])
def test_it_does_what_it_is_told_and_says_what_came_of_it(watch: bool) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S), noting() as (url, codes):
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "lab.live.lifecycle.holder", json.dumps({"url": url, "watch": watch})),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert program.stdin is not None
            program.stdin.write(b"send\nclose\nresume\n")
            came = [await heard(program) for _ in range(7)]
            assert [one["event"] for one in came] == list(SAID)
            assert came[-1]["kind"] == "NotConnected", "this server gives no handle"
            assert await codes.get() == 1000
            await program.communicate(b"")
            assert program.returncode == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(("failed", "said"), [(False, "finished"), (True, "told")])
def test_whatever_its_reader_comes_to_is_said(failed: bool, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An end that nobody tells of would look like responses that stay open."""
    session = LiveSession(_never, Setup("m"))
    if failed:
        session.responses.fail(lambda: ClosedHere("closed here"))
    else:
        session.responses.finish()
    asyncio.run(_read(session))

    assert json.loads(capsys.readouterr().out)["event"] == said


def _never() -> NoReturn:
    raise AssertionError("it does not connect")
