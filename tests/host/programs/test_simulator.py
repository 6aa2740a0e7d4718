"""A simulator as a program: what it hears, whose verdict it tells, and how it ends."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest

from lab.host.programs.options import parser
from lab.host.programs.simulator import SimulatorProgram
from lab.host.protocol.framing import MOST
from tests.host.programs.running import listening, running
from tests.host.shell.leaping import Slow, play


def test_it_tells_what_the_agent_says_and_whose_verdict_is_whose() -> None:
    with listening("job") as (job, port):
        with running("simulator", "127.0.0.1", port) as simulator:
            assert simulator.code() == 0
        assert job.code() == 0
    items = [(line["role"], line["text"]) for line in simulator.of("event") if line["what"] == "ItemAdded"]
    assert items == [
        ("user", "book it"), ("assistant", "It is booked."), ("user", "goodbye"), ("assistant", "Goodbye."),
    ]  # fmt: skip
    states = [line["state"] for line in simulator.of("event") if line["what"] == "AgentStateChanged"]
    assert states == 2 * ["thinking", "speaking", "listening"]
    (told,) = simulator.of("finalized")
    own = {"success": True, "reason": "2 of 2 turns were answered"}
    assert told["own"] == job.of("judging")[0]["provisional"] == own
    assert told["verdict"] == job.of("judged")[0]["verdict"]
    assert told["verdict"]["reason"] == "the agent's author agrees: 2 of 2 turns were answered"


def test_by_hand_the_lines_are_the_turns_until_the_input_ends() -> None:
    with listening("job") as (job, port):
        with running("simulator", "127.0.0.1", port, "--by-hand") as simulator:
            simulator.type("book it", "", "status")
            assert simulator.until("answer").items() >= {"to": "book it", "said": ["It is booked."]}.items()
            assert simulator.until("status")["ended"] is None
            assert simulator.process.poll() is None
            simulator.end_input()
            assert simulator.code() == 0
        assert job.code() == 0
    assert simulator.of("finalized")[0]["own"]["reason"] == "1 of 1 turns were answered"


def test_by_hand_the_end_of_the_transport_ends_the_turns_too() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, running("simulator", "127.0.0.1", str(server.getsockname()[1]), "--by-hand") as simulator:
        server.accept()[0].close()
        assert simulator.code() == 1
    assert simulator.of("finalized")[0]["outcome"] == "lost"


def test_an_end_that_nobody_tells_is_waited_for_no_longer_than_was_said() -> None:
    with listening("job") as (job, port):
        options = ("--await-close", "--close-timeout", "0.1")
        with running("simulator", "127.0.0.1", port, *options) as simulator:
            assert simulator.code() == 0
        assert job.code() == 0
    assert simulator.of("told") == []


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "leaves"])
def test_no_verdict_is_no_success(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with running("simulator", "127.0.0.1", port, "--timeout", "0.1") as simulator:
            made, _ = server.accept()
            with made:
                if answers:
                    made.close()
                assert simulator.code() == 1
    assert simulator.of("finalized")[0]["outcome"] == ("lost" if answers else "timed out")


def test_a_turn_that_no_message_can_hold_is_told_and_the_next_one_is_said() -> None:
    with listening("job") as (job, port):
        with running("simulator", "127.0.0.1", port, "--by-hand") as simulator:
            simulator.type("x" * (MOST + 1), "book it")
            failed = simulator.until("failed")
            assert (len(failed["to"]), failed["outcome"]) == (MOST + 1, "not sent")
            assert "Fix: say less in it" in failed["why"]
            assert simulator.until("answer")["said"] == ["It is booked."]
            simulator.end_input()
            assert simulator.code() == 1
        assert job.code() == 0
    assert simulator.of("finalized")[0]["own"]["reason"] == "1 of 2 turns were answered"


@pytest.mark.parametrize("options", [(), ("--turn", "book it")], ids=["alone", "beside turns"])
def test_a_defect_in_what_leads_it_is_told(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken() -> AsyncIterator[str]:
        for line in ("status", ""):
            if not line:
                raise RuntimeError("it broke")
            yield line

    async def scenario() -> None:
        given = parser().parse_args(["simulator", "h", "1", "--by-hand", "--timeout", "1", *options])
        assert await SimulatorProgram(given, Slow()).run() == 1
        await asyncio.sleep(0)

    monkeypatch.setattr("lab.host.programs.simulator.typed", broken)
    (defect,) = play(scenario)
    assert str(defect["exception"]) == "it broke"
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in said if line["event"] == "finalized"] == ["timed out"]
