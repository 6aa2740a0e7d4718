"""``lab live serve`` prints what redirects a program to it, tells people what happens, and ends with Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cli.live_serve import TOLD, line


def serving(folder: Path, *argv: str) -> "subprocess.Popen[str]":
    ports = ("--port", "0", "--tls-port", "0", "--status-port", "0")
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "live", "serve", *ports, *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_STATE_HOME": str(folder)},
    )


def test_a_shell_can_take_what_it_prints(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        assert running.stdout is not None
        shown = [running.stdout.readline() for _ in range(6)]
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=20)

    exported = dict(text.removeprefix("export ").rstrip().split("=", 1) for text in shown if text.startswith("export "))
    assert exported["SSL_CERT_FILE"] == str(tmp_path / "blackhole-lab" / "live-ca" / "ca.pem")
    assert exported["GOOGLE_GEMINI_BASE_URL"].startswith("https://127.0.0.1:")
    assert all(text.startswith(("export ", "#")) for text in shown)
    assert "Ctrl-C" in err
    assert running.returncode == 0


def test_with_json_there_is_nothing_but_objects(tmp_path: Path) -> None:
    with serving(tmp_path, "--json") as running:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=20)

    assert first["event"] == "listening"
    assert first["ca"] == str(tmp_path / "blackhole-lab" / "live-ca" / "ca.pem")
    assert [json.loads(text)["event"] for text in out.splitlines()] == []


def test_a_wrong_profile_is_told_the_right_ones(tmp_path: Path) -> None:
    with serving(tmp_path, "--profile", "gemini") as running:
        _, err = running.communicate(timeout=20)

    assert running.returncode == 2
    assert "gemini-3.8-live-2026-10" in err


@pytest.mark.parametrize(
    ("event", "fields", "text"),
    [
        ("attach", {"connection": 2, "session": "session-1", "resumed": True}, "connection 2 has session-1 again"),
        ("detach", {"connection": 2, "how": "RST", "detail": "ECONNRESET"}, "connection 2 is gone: RST (ECONNRESET)"),
        ("ready", {"connection": 2}, None),
    ],
)
def test_people_are_told_in_words(event: str, fields: dict[str, object], text: str | None) -> None:
    assert line(event, fields) == text


def test_every_sentence_fits_what_the_server_tells() -> None:
    fields = dict.fromkeys(("connection", "session", "cause", "code", "reason", "how", "text", "error", "factor"), "x")

    assert all(line(event, fields) for event in TOLD)
