"""A job, a simulator and a relay as programs: what keeps them from beginning, and what ends them."""

import asyncio
import os
import select
import signal
import socket

import pytest

from lab.core.flow import Endpoint
from lab.host.programs.common import UNREAD
from lab.host.programs.main import main
from lab.host.programs.options import SCRIPT
from lab.host.shell import transport
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.host import SessionHost
from lab.host.shell.owner import NO_JOB
from tests.host.programs.running import DEADLINE_S, Running, Said, listening, running


def call(
    *options: str, job: tuple[str, ...] = (), codes: tuple[int, int] = (0, 0), host: str = "127.0.0.1"
) -> tuple[Said, Said]:
    """What the job said and what the simulator said."""
    with listening(*options, "job", "--host", host, "--hangs-up-after", "goodbye", *job) as (serving, port):
        with running(*options, "simulator", host, port, "--await-close", "--timeout", "5") as simulator:
            assert simulator.code() == codes[1]
        assert serving.code() == codes[0]
    return serving.said, simulator.said


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("options", [(), ("--websocket",)], ids=["tcp", "websocket"])
def test_a_call_ends_with_the_agent_and_is_judged(options: tuple[str, ...], host: str) -> None:
    job, simulator = call(*options, host=host)

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
    for options in ([], ["--websocket"]):
        assert main([*options, "simulator", "nobody.invalid", "1"]) == 2
        assert "nobody.invalid is no host: " in (why := capsys.readouterr().err)
        assert ". Fix: name one that resolves" in why


@pytest.mark.parametrize("host", ["http://host", "[host", ""])
def test_a_name_that_is_no_part_of_a_url_is_too(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--websocket", "simulator", host, "1"]) == 2
    assert f"ws://{Endpoint(host, 1)} is no address of a WebSocket" in capsys.readouterr().err


def test_an_interrupt_ends_either_without_a_traceback() -> None:
    with listening("job") as (job, _):
        job.process.send_signal(signal.SIGINT)
        assert job.code() == 130
        assert job.process.stderr is not None
        assert job.process.stderr.read() == ""


def test_what_fails_later_is_not_taken_for_what_keeps_it_from_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_given: object) -> int:
        raise OSError("the disk broke")

    monkeypatch.setattr("lab.host.programs.main.run_job", fail)
    with pytest.raises(OSError, match="the disk broke"):
        main(["job"])


def unheard(program: Running) -> None:
    """It ends as a program does that nobody reads, without a word."""
    assert program.process.wait(DEADLINE_S) == UNREAD
    assert program.process.stderr is not None
    assert program.process.stderr.read() == ""


def stop_reading(program: Running) -> None:
    assert program.process.stdout is not None
    program.process.stdout.close()


@pytest.mark.parametrize("line", ["job --port 0", "relay --host-port 0 --remote-port 0", "simulator h 1 --listen"])
def test_one_that_nobody_reads_ends_quietly(line: str) -> None:
    """As with ``| true``."""
    ours, theirs = os.pipe()
    os.close(ours)
    with running(*line.replace(" h 1 ", " 127.0.0.1 0 ").split(), stdout=theirs) as program:
        os.close(theirs)
        unheard(program)


@pytest.mark.parametrize("by", ["a line", "the simulator", "its end"])
@pytest.mark.parametrize("carrier", [(), ("--websocket",)], ids=["tcp", "websocket"])
def test_one_that_nobody_reads_any_more_ends_with_the_next_line_wherever_that_comes_from(
    carrier: tuple[str, ...], by: str
) -> None:
    """From what is typed, from what comes, or from what ends."""
    with (
        listening(*carrier, "job", "--by-hand") as (job, port),
        running(*carrier, "simulator", "127.0.0.1", port, "--by-hand") as simulator,
    ):
        simulator.until("connected")
        job.until("state", because="session-1")
        stop_reading(job)
        if by == "a line":
            job.type("status")
        elif by == "the simulator":
            simulator.type("book it")
        else:
            simulator.process.kill()
        unheard(job)


def test_a_simulator_that_nobody_reads_any_more_ends_with_its_next_line() -> None:
    with listening("job") as (job, port):
        with running("simulator", "127.0.0.1", port, "--by-hand") as simulator:
            simulator.until("connected")
            stop_reading(simulator)
            simulator.type("book it")
            unheard(simulator)
        assert job.code() == 1


def test_a_relay_that_is_interrupted_says_so_like_the_others() -> None:
    with running("relay", "--host-port", "0", "--remote-port", "0") as relay:
        relay.until("listening")
        relay.process.send_signal(signal.SIGINT)
        assert relay.code() == 130
        assert relay.process.stderr is not None
        assert relay.process.stderr.read() == ""


LATE = "(while kill -0 $$; do :; done 2>&-; kill -INT $PPID) & exit 3"
"""Interrupts the relay once that has waited for this one."""


@pytest.mark.parametrize("program", [("sleep", "600"), ("sh", "-c", LATE)], ids=["both", "the relay later"])
def test_an_interrupt_at_a_terminal_ends_a_relay_and_its_program(program: tuple[str, ...]) -> None:
    """Which has it too, and does not end too early thereby."""
    terminal, keyboard = os.openpty()
    line = ("relay", "--host-port", "0", "--remote-port", "0", "--", *program)
    with running(*line, stdin=keyboard, start_new_session=True) as relay:
        relay.until("started")
        if program[0] == "sleep":
            os.killpg(relay.process.pid, signal.SIGINT)
        assert relay.code() == 130
        assert relay.process.stderr is not None
        assert relay.process.stderr.read() == ""
    os.close(terminal)
    os.close(keyboard)


PARENT = """sleep 600 & echo '{"event": "beside", "pid": '$!'}'; wait"""


def test_a_relay_that_nobody_reads_any_more_leaves_nothing_of_its_program_behind() -> None:
    with running("relay", "--host-port", "0", "--remote-port", "0", "--", "sh", "-c", PARENT) as relay:
        ports = relay.until("listening")
        child = os.pidfd_open(relay.until("beside")["pid"])
        ends = [socket.create_connection(("127.0.0.1", ports[side]), DEADLINE_S) for side in ("host", "remote")]
        relay.until("joined")
        stop_reading(relay)
        ends.append(socket.create_connection(("127.0.0.1", ports["host"]), DEADLINE_S))  # Refused, which is said.
        unheard(relay)
        assert select.select([child], [], [], DEADLINE_S)[0]
        os.close(child)
        for end in ends:
            end.close()
