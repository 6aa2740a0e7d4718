"""A job and a simulator as programs, each in a process of its own."""

import asyncio
import json
import subprocess
import sys
from typing import IO, Any

import pytest

from lab.host.program import SCRIPT, main
from lab.host.shell import transport
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.host import SessionHost

DEADLINE_S = 60.0
"""For a process that starts on a busy machine."""


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-m", "lab.host", *arguments], stdout=subprocess.PIPE, text=True)


def lines(output: IO[str] | None) -> list[dict[str, Any]]:
    assert output is not None
    return [json.loads(line) for line in output]


def call(*options: str, job: tuple[str, ...] = ()) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the job said and what the simulator said."""
    with start(*options, "job", "--port", "0", "--hangs-up-after", "goodbye", *job) as serving:
        try:
            assert serving.stdout is not None
            port = json.loads(serving.stdout.readline())["port"]
            with start(*options, "simulator", "127.0.0.1", str(port), "--await-close", "--timeout", "5") as simulator:
                said = lines(simulator.stdout)
                assert simulator.wait(DEADLINE_S) == 0
            heard = lines(serving.stdout)
            assert serving.wait(DEADLINE_S) == 0
        finally:
            serving.kill()
    return heard, said


@pytest.mark.parametrize("options", [(), ("--websocket",)], ids=["tcp", "websocket"])
def test_a_call_ends_with_the_agent_and_is_judged(options: tuple[str, ...]) -> None:
    job, simulator = call(*options)

    told = [line for line in simulator if line["event"] in {"told", "finalized"}]
    assert (told[0]["reason"], told[1]["outcome"], told[1]["verdict"]["success"]) == ("COMPLETED", "answered", True)
    assert [line["event"] for line in job][-2:] == ["room_deleted", "done"]
    assert next(line for line in job if line["event"] == "judging")["reason"] == "2 of 2 turns were answered"


def test_a_job_with_a_defect_shows_it() -> None:
    job, simulator = call(job=("--variant", "shutdown at once"))

    # By the host while it drains, by the transport after that.
    assert next(line["outcome"] for line in simulator if line["event"] == "finalized") in {"refused", "lost"}
    assert not [line for line in job if line["event"] == "judging"]


def test_both_can_be_led_by_hand() -> None:
    """The session is ended by a line, and the simulator says what it is told to."""
    pipe = subprocess.PIPE
    argv = (sys.executable, "-m", "lab.host")
    serving = subprocess.Popen(
        [*argv, "job", "--port", "0", "--by-hand", "--judging", "0.1"], stdin=pipe, stdout=pipe, text=True
    )
    with serving:
        try:
            assert serving.stdout is not None
            assert serving.stdin is not None
            port = str(json.loads(serving.stdout.readline())["port"])
            simulator = subprocess.Popen(
                [*argv, "simulator", "127.0.0.1", port, "--turn", "book it", "--await-close", "--by-hand"],
                stdin=pipe, stdout=pipe, text=True,
            )  # fmt: skip
            with simulator:
                assert simulator.stdin is not None
                assert simulator.stdout is not None
                simulator.stdin.write("goodbye\n")
                simulator.stdin.flush()
                said: list[dict[str, Any]] = []
                while not said or said[-1]["event"] != "answer":
                    said.append(json.loads(simulator.stdout.readline()))
                assert said[-1]["to"] == "goodbye"
                simulator.stdin.write("status\n")
                simulator.stdin.flush()
                said.append(json.loads(simulator.stdout.readline()))
                serving.stdin.write("what?\nstatus\nend\n")
                serving.stdin.flush()
                said += lines(simulator.stdout)
                assert simulator.wait(DEADLINE_S) == 0
            heard = lines(serving.stdout)
            assert serving.wait(DEADLINE_S) == 0
        finally:
            serving.kill()
    (asked,) = [line for line in said if line["event"] == "status"]
    assert (asked["told"], asked["ended"]) == (None, None)
    assert [line["reason"] for line in said if line["event"] == "told"] == ["USER_INITIATED"]
    (asked,) = [line for line in heard if line["event"] == "status"]
    assert (asked["job"], asked["host"], asked["session"]) == ("running", "attached", "session-1")
    assert [line["line"] for line in heard if line["event"] == "not_understood"] == ["what?"]
    assert heard[-1]["event"] == "done"


def test_a_simulator_can_wait_for_a_host_that_connects_by_itself() -> None:
    async def serve(port: int) -> None:
        host = SessionHost(await transport.connect("127.0.0.1", port))
        host.register_session(ScriptedAgent("s1", "room-1", SCRIPT))
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.to_thread(simulator.wait)
        await host.close()

    with start("simulator", "127.0.0.1", "0", "--listen", "--timeout", "5") as simulator:
        try:
            assert simulator.stdout is not None
            asyncio.run(serve(json.loads(simulator.stdout.readline())["port"]))
            said = lines(simulator.stdout)
        finally:
            simulator.kill()
    assert [line["event"] for line in said if line["event"] in {"connected", "finalized"}] == ["connected", "finalized"]
    assert simulator.returncode == 0


@pytest.mark.parametrize("options", [[], ["--websocket"]], ids=["tcp", "websocket"])
def test_nobody_there_is_the_users_mistake(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*options, "simulator", "127.0.0.1", "1"]) == 2
    assert "The simulator cannot begin" in capsys.readouterr().err
