"""A job as a program: it ends with its simulator, whatever that does, and its exit code says whether it judged."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lab.host.programs.job import JobProgram
from lab.host.programs.options import parser
from tests.host.programs.running import listening, running
from tests.host.shell.leaping import Slow, play

BOTH = pytest.mark.parametrize("carrier", [(), ("--websocket",)], ids=["tcp", "websocket"])


@BOTH
def test_a_job_ends_with_a_simulator_that_has_its_verdict(carrier: tuple[str, ...]) -> None:
    with listening(*carrier, "job") as (job, port):
        with running(*carrier, "simulator", "127.0.0.1", port) as simulator:
            assert simulator.code() == 0
        assert job.code() == 0
    assert [line["cause"] for line in job.of("session_closed")] == ["participant_disconnected"]
    assert [line["event"] for line in job.said][-2:] == ["room_deleted", "done"]


def test_a_job_that_is_led_by_hand_ends_with_its_simulator_too() -> None:
    with listening("job", "--by-hand") as (job, port):
        with running("simulator", "127.0.0.1", port) as simulator:
            assert simulator.code() == 0
        assert job.code() == 0


@pytest.mark.parametrize("by_hand", [(), ("--by-hand",)], ids=["alone", "by hand"])
def test_a_simulator_that_leaves_without_a_word_ends_the_job_without_a_verdict(by_hand: tuple[str, ...]) -> None:
    with listening("job", *by_hand) as (job, port):
        socket.create_connection(("127.0.0.1", int(port))).close()
        assert job.code() == 1
    assert job.of("done")[0]["verdict_taken"] is False


def test_what_is_no_frame_ends_the_job_without_a_verdict() -> None:
    with listening("job") as (job, port), socket.create_connection(("127.0.0.1", int(port))) as talker:
        talker.sendall(b"\xff" * 8)
        assert job.code() == 1
    assert "is longer than" in job.of("note")[0]["error"]


def test_the_end_of_input_is_a_shutdown() -> None:
    with (
        listening("job", "--by-hand", "--session-end-timeout", "0") as (job, port),
        socket.create_connection(("127.0.0.1", int(port))),
    ):
        job.until("connected")
        job.end_input()
        assert job.code() == 1
    assert [line["cause"] for line in job.of("session_closed")] == ["job_shutdown"]


def test_a_session_can_end_by_the_clock() -> None:
    with listening("job", "--end-after", "0.2") as (job, port):
        with running("simulator", "127.0.0.1", port, "--await-close") as simulator:
            assert simulator.code() == 0
        assert job.code() == 0
    (ended,), (came,) = job.of("session_closed"), job.of("connected")
    assert ended["at"] - came["at"] >= 0.2
    assert [line["reason"] for line in simulator.of("told")] == ["USER_INITIATED"]


def test_a_job_that_stays_is_without_a_session_and_then_has_another_one() -> None:
    """All of it by hand, at both ends."""
    with listening("job", "--by-hand", "--stay") as (job, port):
        with running("simulator", "127.0.0.1", port, "--by-hand") as simulator:
            simulator.type("book it")
            assert simulator.until("answer")["said"] == ["It is booked."]
            job.type("end")
            simulator.until("told")
            simulator.type("book it")
            assert simulator.until("failed")["why"] == "no active session"
            job.type("status")
            assert job.until("status").items() >= {"job": "running", "host": "empty", "session": None}.items()
            job.type("start")
            job.until("state", because="session-2")
            simulator.type("goodbye")
            assert simulator.until("answer")["said"] == ["Goodbye."]
            simulator.end_input()
            # Two of three turns were answered.
            assert simulator.code() == 1
        assert job.code() == 0
    assert job.of("judged")[0]["verdict"]["success"] is False


def test_what_cannot_be_done_is_said_with_what_can() -> None:
    with listening("job", "--by-hand", "--session-end-timeout", "9") as (job, port):
        with socket.create_connection(("127.0.0.1", int(port))):
            job.type("hang up", "end", "start")
            assert job.until("not_understood")["known"] == ["start", "end", "shutdown", "status"]
            assert "Fix: start sessions before the shutdown" in job.until("not_done")["why"]
        assert job.code() == 1


def test_a_defect_that_keeps_the_verdict_is_no_success_at_either_end() -> None:
    with listening("job", "--variant", "released", "--hangs-up-after", "goodbye") as (job, port):
        with running("simulator", "127.0.0.1", port, "--await-close") as simulator:
            assert simulator.code() == 1
        assert job.code() == 1
    assert simulator.of("finalized")[0]["verdict"] is None


def test_framed_tcp_at_a_websocket_job_is_told_at_both_ends_and_the_next_one_served() -> None:
    with listening("--websocket", "job") as (job, port):
        with running("simulator", "127.0.0.1", port, "--timeout", "5") as simulator:
            assert simulator.code() == 1
        assert "begins like HTTP" in simulator.of("ended")[0]["by"]
        assert "Fix: have the same carrier" in job.until("refused")["why"]
        with running("--websocket", "simulator", "127.0.0.1", port) as simulator:
            assert simulator.code() == 0
        assert job.code() == 0
        assert job.process.stderr is not None
        assert job.process.stderr.read() == ""


def test_a_websocket_at_a_framed_job_is_told_at_both_ends() -> None:
    with listening("job") as (job, port):
        with running("--websocket", "simulator", "127.0.0.1", port) as simulator:
            assert simulator.code() == 2
            assert simulator.process.stderr is not None
            assert "is no WebSocket" in (why := simulator.process.stderr.read())
            assert "Fix: have --websocket at both sides, or at neither" in why
        assert job.code() == 1
    assert "begins like HTTP" in job.of("note")[0]["error"]


@BOTH
@pytest.mark.parametrize("interrupted", [0, 1], ids=["job", "simulator"])
def test_an_interrupt_in_the_midst_of_a_call_leaves_nothing_open(carrier: tuple[str, ...], interrupted: int) -> None:
    strict: dict[str, Any] = {
        "env": os.environ | {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
        # As where somebody types it: what is ignored would stay so.
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    }
    with running(*carrier, "job", "--port", "0", **strict) as job:
        port = str(job.until("listening")["port"])
        with running(*carrier, "simulator", "127.0.0.1", port, "--by-hand", **strict) as simulator:
            job.until("state", state="attached")
            simulator.type("status")
            simulator.until("status")
            program = (job, simulator)[interrupted]
            program.process.send_signal(signal.SIGINT)
            assert program.code() == 130
            assert program.process.stderr is not None
            assert program.process.stderr.read() == ""


def test_a_defect_in_what_leads_it_is_told_and_the_simulator_served_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> AsyncIterator[str]:
        for line in ("status", ""):
            if not line:
                raise RuntimeError("it broke")
            yield line

    async def scenario() -> None:
        transport = Slow()
        given = parser().parse_args(["job", "--by-hand"])
        running = asyncio.ensure_future(JobProgram(given, transport).run())
        await asyncio.sleep(1.0)
        assert not running.done()
        transport.abort()
        assert await running == 1

    monkeypatch.setattr("lab.host.programs.job.typed", broken)
    (defect,) = play(scenario)
    assert str(defect["exception"]) == "it broke"
