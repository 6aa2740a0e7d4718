"""The repro of a live session that stays locked, both ways that it runs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "repro" / "resume_lockout.py"
TLS = ("--host", "127.0.0.1", "--port", "0", "--tls-port", "0", "--ca")
STORY = ["idle", "lost", *["resume"] * 4, "tried", "path back", "resume", "closed", "resume", "claim holds"]
REFUSED = "1011 Internal error encountered."


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """The session server on loopback; the certificate to trust, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.live.server", *TLS, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        listening = json.loads(process.stdout.readline())
        yield str(folder / "ca.pem"), f"https://127.0.0.1:{listening['wss']}"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def run(**environment: str) -> list[str]:
    """What the script prints; its claim must hold."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GEMINI_", "GOOGLE_"))}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def check(lines: list[str]) -> None:
    told = [line.split(":")[0] for line in lines[: len(STORY)]]
    assert told == STORY, lines
    attempts = [line for line in lines if line.startswith("resume:")]
    assert [REFUSED in attempt for attempt in attempts] == [True] * 5 + [False], lines
    assert re.fullmatch(r"resume: accepted after \d\.\d\d s", attempts[-1])


def test_with_packets_that_vanish_the_session_stays_locked_until_its_connection_is_closed() -> None:
    lines = run()

    check(lines)
    assert any(line.startswith("confirmed: dark for ") for line in lines), "the run has proved its hole"


def test_with_a_relay_that_passes_nothing_it_does_too(tmp_path: Path) -> None:
    with served(tmp_path) as (authority, address):
        check(run(SSL_CERT_FILE=authority, GOOGLE_GEMINI_BASE_URL=address))
