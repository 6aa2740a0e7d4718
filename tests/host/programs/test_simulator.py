"""A simulator as a program: what it hears, whose verdict it tells, and how it ends."""

import socket

import pytest

from tests.host.programs.running import listening, running


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
