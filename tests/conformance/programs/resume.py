"""Lose the connection by an abort in the middle of a call, resume, and answer the call on the new connection."""

import asyncio
import time

from conversation import QUESTION, book, connected, refused, say

SETTLED_S = 1.5
"""From the abort on, when the study's later attempts were accepted."""


async def main() -> None:
    """The first attempt comes too early, the second one does not."""
    async with connected() as talk:
        call = await book(talk)
        await asyncio.sleep(1.0)
        aborted_at = time.monotonic()
        talk.abort()
    handle = talk.handle
    assert handle is not None
    say("first", refused=await refused(handle))
    await asyncio.sleep(aborted_at + SETTLED_S - time.monotonic())
    async with connected(handle) as talk:
        say("resumed", since_s=time.monotonic() - aborted_at, session_id=talk.session.session_id)
        await talk.respond(call)
        await talk.until("turn")
        say("answer", text=await talk.answer_to(QUESTION))
    say("done")


asyncio.run(main())
