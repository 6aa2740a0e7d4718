"""A program that ends with its session open, of which the server sees the end."""

import asyncio
import json
import subprocess
import sys

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, Variant
from tests.live.lifecycle.scenes import noting

DEADLINE_S = 20.0


@pytest.mark.parametrize(("variant", "code"), [(LAB, 1000), (PUBLISHED, 1006)], ids=["the lab's", "as published"])
def test_at_the_interpreters_exit_the_lab_says_goodbye_and_the_published_client_just_ends(
    variant: Variant, code: int
) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S), noting() as (url, codes):
            wanted = json.dumps({"variant": variant.name, "to": [[url, "m"]]})
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "lab.live.lifecycle.leaver", wanted),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert program.stdout is not None
            assert len(json.loads(await program.stdout.readline())["ports"]) == 1
            assert codes.empty()
            await program.communicate(b"end\n")

            assert await codes.get() == code

    asyncio.run(scenario())
