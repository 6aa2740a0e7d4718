"""The program says where it listens, tells what happens a line each, and ends when it is asked to."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from lab.core.errors import UsageError
from lab.live.protocol.paths import developer
from lab.live.server import main
from lab.live.server.program import changed, options_of, parser

STARTS_S = 30.0


@contextlib.contextmanager
def program(*argv: str, stdin: int = subprocess.PIPE) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A server in a process of its own, and its first line."""
    command = [sys.executable, "-m", "lab.live.server", "--host", "127.0.0.1", "--port", "0", *argv]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()


def events(running: subprocess.Popen[str], within_s: float = STARTS_S) -> list[dict[str, Any]]:
    out, err = running.communicate(timeout=within_s)
    assert "Traceback" not in err
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("end", ["quit", "SIGTERM", "SIGINT"])
def test_it_listens_tells_and_ends(end: str, tmp_path: Path) -> None:
    async def talk(port: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}{developer()}") as client:
            await client.send('{"setup":{"model":"models/m","sessionResumption":{}}}')
            await client.recv()

    options = ("--tls-port", "0", "--status-port", "0", "--ca", str(tmp_path / "ca"), "--set", "setup_s=0.01")
    with program(*options) as (running, first):
        assert first["event"] == "listening"
        assert all(first[name] > 0 for name in ("ws", "wss", "status"))
        asyncio.run(talk(first["ws"]))
        with urllib.request.urlopen(f"http://127.0.0.1:{first['status']}/healthz", timeout=5) as answer:
            assert answer.status == 200
        if end == "quit":
            assert running.stdin is not None
            running.stdin.write("what?\nstatus\nquit\n")
            running.stdin.flush()
        else:
            running.send_signal(getattr(signal, end))
        heard = events(running)
        told = [event["event"] for event in heard]
        counts = [(event["connections"], len(event["sessions"])) for event in heard if event["event"] == "status"]
        assert counts == ([(0, 1)] if end == "quit" else [])
        assert told[:2] == ["connected", "opened"]
        assert {"attach", "ready", "detach"} <= set(told)
        assert running.returncode == 0


def test_the_end_of_standard_input_ends_nothing() -> None:
    with program(stdin=subprocess.DEVNULL) as (running, first):
        assert first["event"] == "listening"
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)


def test_a_reader_that_goes_away_costs_the_lines_and_no_session() -> None:
    async def talk(port: int) -> None:
        for _ in range(3):
            async with connect(f"ws://127.0.0.1:{port}{developer()}") as client:
                await client.send('{"setup":{"model":"models/m"}}')
                assert b"setupComplete" in await client.recv()

    with program("--set", "setup_s=0.01") as (running, first):
        assert running.stdout is not None
        os.close(os.dup(running.stdout.fileno()))
        running.stdout.close()
        asyncio.run(talk(first["ws"]))
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(STARTS_S) == 0


def test_a_reader_that_does_not_read_holds_nobody_up() -> None:
    async def talk(port: int) -> None:
        for _ in range(100):  # six events of 150 octets each: more than a pipe holds
            async with connect(f"ws://127.0.0.1:{port}{developer()}") as client:
                await client.send('{"setup":{"model":"models/m"}}')
                assert b"setupComplete" in await client.recv()

    with program("--set", "setup_s=0") as (running, first):
        asyncio.run(asyncio.wait_for(talk(first["ws"]), STARTS_S))
        running.send_signal(signal.SIGTERM)
        assert sum(event["event"] == "detach" for event in events(running)) == 100


WRONG: list[tuple[Sequence[str], str]] = [
    (("--tls-port", "0"), "add --ca DIR"),
    (("--set", "settle_s"), "FIELD=VALUE"),
    (("--set", "setle_s=1"), "settle_s"),
    (("--set", "settle_s=soon"), "settle_s cannot be"),
    (("--host", "192.0.2.1", "--port", "0"), "cannot begin"),
    (("--port", "0", "--log", "/no/such/folder/log"), "cannot begin"),
]


@pytest.mark.parametrize(("argv", "said"), WRONG)
def test_what_cannot_be_served_is_said_with_its_fix(
    argv: Sequence[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == UsageError.exit_code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Fix: " in shown


def test_a_port_that_is_taken_is_named_with_the_options_for_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(("--host", "127.0.0.1", "--port", str(port))) == UsageError.exit_code
    shown = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in shown
    assert "--port" in shown


def test_the_command_line_becomes_options(tmp_path: Path) -> None:
    argv = ["--profile", "slow-pongs", "--set", "settle_s=0.5", "--seed", "7", "--name", "live.example"]
    options = options_of(parser().parse_args([*argv, "--bookings", str(tmp_path / "b"), "--log", str(tmp_path / "l")]))

    assert (options.profile.name, options.profile.pong_delay_s, options.profile.settle_s) == ("slow-pongs", 8.0, 0.5)
    assert (options.port, options.tls_port, options.seed, options.names) == (8765, None, 7, ("live.example",))
    assert (options.bookings, options.log) == (tmp_path / "b", tmp_path / "l")


def test_a_profile_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="slow-pongs"):
        changed("slow-pong", [])


def test_the_package_is_imported_with_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import lab.live.server\n"
        "late = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(late - sys.stdlib_module_names - {'lab'})\n"
        "import lab.live.server.program\n"
        "late = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(late - sys.stdlib_module_names - {'lab'})\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=STARTS_S)

    assert shown.stdout.splitlines() == ["set()", "{'websockets'}"]
