"""A job and a simulator as programs, each in a process of its own."""

import asyncio
import signal
import socket

import pytest

from lab.host.program import main
from lab.host.programs.options import SCRIPT
from lab.host.shell import transport
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.host import NO_JOB, SessionHost
from tests.host.programs.running import DEADLINE_S, Said, listening, running


def call(*options: str, job: tuple[str, ...] = (), codes: tuple[int, int] = (0, 0)) -> tuple[Said, Said]:
    """What the job said and what the simulator said."""
    with listening(*options, "job", "--hangs-up-after", "goodbye", *job) as (serving, port):
        with running(*options, "simulator", "127.0.0.1", port, "--await-close", "--timeout", "5") as simulator:
            assert simulator.code() == codes[1]
        assert serving.code() == codes[0]
    return serving.said, simulator.said


@pytest.mark.parametrize("options", [(), ("--websocket",)], ids=["tcp", "websocket"])
def test_a_call_ends_with_the_agent_and_is_judged(options: tuple[str, ...]) -> None:
    job, simulator = call(*options)

    told = [line for line in simulator if line["event"] in {"told", "finalized"}]
    assert (told[0]["reason"], told[1]["outcome"], told[1]["verdict"]["success"]) == ("COMPLETED", "answered", True)
    assert [line["event"] for line in job][-2:] == ["room_deleted", "done"]
    assert next(line for line in job if line["event"] == "judging")["provisional"]["success"] is True


def test_a_job_with_a_defect_shows_it() -> None:
    job, simulator = call(job=("--variant", "shutdown at once"), codes=(1, 1))

    # By the host while it drains, by the transport after that.
    assert next(line["outcome"] for line in simulator if line["event"] == "finalized") in {"refused", "lost"}
    assert not [line for line in job if line["event"] == "judging"]


def test_both_can_be_led_by_hand() -> None:
    """The session is ended by a line, and the simulator says what it is told to beside its turns."""
    with listening("job", "--by-hand", "--judging", "0.1") as (job, port):
        with running("simulator", "127.0.0.1", port, "--turn", "book it", "--await-close", "--by-hand") as simulator:
            simulator.type("goodbye")
            assert simulator.until("answer")["to"] == "goodbye"
            simulator.type("status")
            asked = simulator.until("status")
            assert (asked["told"], asked["ended"]) == (None, None)
            job.type("what?", "status", "end")
            assert simulator.code() == 0
        assert job.code() == 0
    assert [line["reason"] for line in simulator.of("told")] == ["USER_INITIATED"]
    (asked,) = job.of("status")
    assert (asked["job"], asked["host"], asked["session"]) == ("running", "attached", "session-1")
    assert [line["line"] for line in job.of("not_understood")] == ["what?"]
    assert job.said[-1]["event"] == "done"


def test_a_simulator_can_wait_for_a_host_that_connects_by_itself() -> None:
    async def serve(port: int) -> None:
        host = SessionHost(await transport.connect("127.0.0.1", port))
        host.register_session(ScriptedAgent("s1", "room-1", SCRIPT))
        async with asyncio.timeout(DEADLINE_S):
            # A session's own host has no verdict to give.
            assert await asyncio.to_thread(simulator.code) == 1
        await host.close()

    with running("simulator", "127.0.0.1", "0", "--listen", "--timeout", "5") as simulator:
        asyncio.run(serve(simulator.until("listening")["port"]))
    assert simulator.of("connected")
    assert simulator.of("finalized")[0]["error"] == NO_JOB


def test_nobody_there_is_the_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--websocket"]):
        assert main([*options, "simulator", "127.0.0.1", "1"]) == 2
        assert capsys.readouterr().err == (
            "The simulator cannot begin: nobody listens on 127.0.0.1, port 1. "
            "Fix: start the job first, or name the address and the port on which it listens\n"
        )


def test_a_port_that_is_taken_and_a_name_without_an_address_are_too(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["job", "--port", str(taken.getsockname()[1])]) == 2
    assert "address already in use. Fix: name another address or port" in capsys.readouterr().err
    assert main(["simulator", "nobody.invalid", "1"]) == 2
    assert "nobody.invalid is no host: " in (why := capsys.readouterr().err)
    assert ". Fix: name one that resolves" in why


def test_an_interrupt_ends_either_without_a_traceback() -> None:
    with listening("job") as (job, _):
        job.process.send_signal(signal.SIGINT)
        assert job.code() == 130
        assert job.process.stderr is not None
        assert job.process.stderr.read() == ""
