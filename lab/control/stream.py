"""Events as server-sent events (WHATWG HTML, section 9.2)."""

import asyncio
import json
from collections.abc import AsyncIterator

from lab.control.events import Event, EventLog

KEEP_ALIVE_S = 15.0
"""A comment goes out after so much silence, so that whoever stands between does not close the stream."""


async def events(log: EventLog, last_id: str | None) -> AsyncIterator[bytes]:
    """The log from an id on, and whatever comes, until the log is closed.

    Args:
        log: What is told.
        last_id: Of the last event that the listener has; None, or an id of another life, for all that is kept.
    """
    loop, awake = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(awake.set)

    log.listen(wake)
    try:
        number = 0 if last_id is None else log.number_of(last_id)
        # Sent at once: the listener sees that it is heard, and how soon to come back.
        yield b"retry: 1000\n\n"
        while True:
            closed = log.closed
            awake.clear()
            for event in log.after(number):
                number = event.number
                yield as_text(log, event)
            if closed:
                return
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await awake.wait()
            except TimeoutError:
                yield b": nothing happened\n\n"
    finally:
        log.forget(wake)


def as_text(log: EventLog, event: Event) -> bytes:
    """One event as it goes over the wire."""
    data = json.dumps({"at": event.at, **event.detail})
    return f"id: {log.name(event)}\nevent: {event.kind}\ndata: {data}\n\n".encode()
