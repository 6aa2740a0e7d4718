import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from lab.control import stream
from lab.control.events import EventLog


def read(
    log: EventLog, number: int, last_id: str | None = None, after: Callable[[], object] = lambda: None
) -> list[str]:
    """So many pieces of the stream, with something done once it has begun."""

    async def collect() -> list[str]:
        source: AsyncIterator[bytes] = stream.events(log, last_id)
        pieces = [(await anext(source)).decode()]
        threading.Timer(0.05, after).start()
        async with asyncio.timeout(5):
            while len(pieces) < number:
                pieces.append((await anext(source)).decode())
        await source.aclose()  # type: ignore[attr-defined]  # it is a generator
        return pieces

    return asyncio.run(collect())


def test_the_past_comes_first_and_then_what_happens() -> None:
    log = EventLog()
    log.publish(1.5, "cut", {"fault": "f"})
    _, past, present = read(log, 3, after=lambda: log.publish(2.5, "healed", {"fault": "f"}))

    assert past == f'id: {log.life}.1\nevent: cut\ndata: {{"at": 1.5, "fault": "f"}}\n\n'
    assert present.splitlines()[:2] == [f"id: {log.life}.2", "event: healed"]


def test_who_comes_back_is_told_what_was_missed() -> None:
    log = EventLog()
    for n in range(3):
        log.publish(n, "cut", {"n": n})

    pieces = read(log, 3, f"{log.life}.1")

    assert [json.loads(piece.split("data: ")[1])["n"] for piece in pieces[1:]] == [1, 2]


def test_the_stream_ends_with_the_log_and_has_its_last_words() -> None:
    log = EventLog()

    def end() -> None:
        log.publish(1.0, "closing", {})
        log.close()

    async def all_of_it() -> list[bytes]:
        threading.Timer(0.05, end).start()
        async with asyncio.timeout(5):
            return [piece async for piece in stream.events(log, None)]

    assert b"event: closing" in asyncio.run(all_of_it())[-1]
    assert log._listeners == []


def test_a_comment_keeps_a_silent_stream_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_S", 0.05)

    assert read(EventLog(), 2)[1].startswith(":")


def test_a_line_break_in_an_event_does_not_break_the_stream() -> None:
    log = EventLog()
    event = log.publish(1.0, "trouble", {"reason": "one\ntwo\r\n\nevent: cut"})

    assert stream.as_text(log, event).count(b"\n") == 4
