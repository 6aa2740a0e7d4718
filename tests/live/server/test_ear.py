"""Speech is understood in a thread, one utterance after the other, and what is known is not asked again."""

import asyncio
import threading

import pytest

from lab.live.server.ear import Ear


def test_what_was_said_comes_back_in_the_loop() -> None:
    asked: list[tuple[bytes, str]] = []
    heard: list[tuple[str, str, str]] = []

    def recognise(pcm: bytes) -> str:
        asked.append((pcm, threading.current_thread().name))
        return pcm.decode()

    async def scenario() -> None:
        done = asyncio.Event()

        def take(session: str, text: str) -> None:
            heard.append((session, text, threading.current_thread().name))
            if len(heard) == 3:
                done.set()

        ear = Ear(recognise, take)
        for session, pcm in (("a", b"one"), ("b", b"two"), ("c", b"one")):
            ear.take(session, pcm)
        await asyncio.wait_for(done.wait(), 5)
        ear.close()

    asyncio.run(scenario())
    assert heard == [(session, text, "MainThread") for session, text in (("a", "one"), ("b", "two"), ("c", "one"))]
    assert [pcm for pcm, _ in asked] == [b"one", b"two"]
    assert all(name.startswith("ear") for _, name in asked)


def test_a_missing_recogniser_is_said_once_and_nothing_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []

    def recognise(_pcm: bytes) -> str:
        raise RuntimeError("no recogniser. Fix: install it")

    async def scenario() -> None:
        done = asyncio.Event()

        def take(_session: str, text: str) -> None:
            heard.append(text)
            if len(heard) == 2:
                done.set()

        ear = Ear(recognise, take)
        ear.take("a", b"1")
        ear.take("a", b"2")
        await asyncio.wait_for(done.wait(), 5)
        assert ear.deaf is not None
        ear.close()

    asyncio.run(scenario())
    assert heard == ["", ""]
    assert capsys.readouterr().err.count("Fix: install it") == 1
