"""``lab live assistant`` tells people what happens, and its exit code says whether the user was told the truth."""

import asyncio
import json
import sys
from typing import Any

import pytest

from lab.cli.live_assistant import in_words
from tests.live.client.fake import FakeServer, serving

DEADLINE_S = 30.0


async def assisted(url: str, *argv: str, typed: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the verb."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lab", "live", "assistant", "--url", url, *argv), stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(process.communicate(typed.encode()), DEADLINE_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def script(*steps: dict[str, Any]) -> tuple[str, str]:
    return "--script", json.dumps(steps)


BOOK = {"do": "type", "text": "Book it"}


def test_a_true_answer_is_exit_code_0_and_a_story() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            steps = script(BOOK, {"do": "await", "event": "model_said"}, {"do": "ask"})
            code, out, err = await assisted(server.url, *steps, "--commit-after", "100ms")

        assert (code, err) == (0, "")
        assert "the backend commits: BK-1001" in out
        assert out.rstrip().endswith("bookings: 1")

    asyncio.run(scenario())


def test_an_untrue_answer_is_exit_code_1() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            steps = script({"do": "hold-result"}, BOOK, {"do": "await", "event": "committed"}, {"do": "ask"})
            code, out, _ = await assisted(server.url, *steps, "--commit-after", "100ms")

        assert code == 1
        assert "consistent False" in out

    asyncio.run(scenario())


def test_what_is_typed_is_said_until_the_input_ends() -> None:
    async def scenario() -> None:
        async with serving(FakeServer()) as server:
            code, out, _ = await assisted(server.url, "--json", typed="hello\n")

        events = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert {"setup_complete", "close_old", "bookings"} <= {each["event"] for each in events}
        assert server.closes == [1000]

    asyncio.run(scenario())


def test_a_wrong_option_is_a_sentence_with_its_fix() -> None:
    async def scenario() -> None:
        code, _, err = await assisted("nowhere")

        assert code == 2
        assert "--url is a URL" in err
        assert "Traceback" not in err

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("event", "fields", "words"),
    [
        ("lost", {"attempt": 1, "silent_s": 2.01, "by": "silence"}, "connection 1 is lost: silent for 2.01 s"),
        ("help", {"text": "/quit ends"}, "/quit ends"),
        ("closed", {"attempt": 1, "code": None, "reason": ""}, "connection 1 is closed"),
        ("handle", {"handle": "h", "resumable": True, "attempt": 1}, None),
    ],
)
def test_people_are_told_what_concerns_them(event: str, fields: dict[str, Any], words: str | None) -> None:
    assert in_words(event, fields) == words
