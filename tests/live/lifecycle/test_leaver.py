"""A program that ends with its session open, of which the server sees the end."""

import asyncio
import json
import subprocess
import sys

import pytest
from websockets.asyncio.server import ServerConnection, serve

from lab.live.lifecycle import LAB, PUBLISHED, Variant
from lab.live.protocol import wire
from lab.live.protocol.messages import ServerMessage, SetupComplete

DEADLINE_S = 20.0


@pytest.mark.parametrize(("variant", "code"), [(LAB, 1000), (PUBLISHED, 1006)], ids=["the lab's", "as published"])
def test_at_the_interpreters_exit_the_lab_says_goodbye_and_the_published_client_just_ends(
    variant: Variant, code: int
) -> None:
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
            wanted = json.dumps({"variant": variant.name, "to": [[f"ws://127.0.0.1:{port}", "m"]]})
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "lab.live.lifecycle.leaver", wanted),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert program.stdout is not None
            assert len(json.loads(await program.stdout.readline())["ports"]) == 1
            assert not ended.is_set()
            await program.communicate(b"end\n")
            await ended.wait()

    asyncio.run(scenario())

    assert codes == [code]
