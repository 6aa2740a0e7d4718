"""A program that drops its session, of which the server and the reader of the responses see the end."""

import asyncio
import json
import subprocess
import sys

import pytest
from websockets.asyncio.server import ServerConnection, serve

from lab.live.lifecycle import LAB, PUBLISHED
from lab.live.protocol import wire
from lab.live.protocol.messages import ServerMessage, SetupComplete

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


@pytest.mark.parametrize(("variant", "code"), [(LAB.name, 1000), (PUBLISHED.name, 1006)])
def test_the_labs_says_goodbye_and_the_published_one_stays_until_the_program_ends(variant: str, code: int) -> None:
    codes: list[int | None] = []

    async def scenario() -> None:
        ended = asyncio.Event()

        async def handle(connection: ServerConnection) -> None:
            await connection.recv()
            await connection.send(wire.encode(ServerMessage(setup_complete=SetupComplete())))
            await connection.wait_closed()
            codes.append(connection.close_code)
            ended.set()

        async with asyncio.timeout(DEADLINE_S), serve(handle, "127.0.0.1", 0, ping_interval=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            program = await started(f"ws://127.0.0.1:{port}", variant)
            if variant == LAB.name:
                assert await heard(program) == "finished"
                await ended.wait()
            out, _ = await program.communicate(b"")
            assert out == b"", "as published nobody is told"
            await ended.wait()
            assert program.returncode == 0

    asyncio.run(scenario())

    assert codes == [code]
