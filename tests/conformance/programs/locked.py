"""Try to resume a session whose old connection was silently lost, and once more when the old one has been closed.

Whoever runs it cuts the flow of the first connection when it says ``tool_call`` and writes ``cut``, and heals it when
it says ``locked`` and writes ``healed``.
"""

import asyncio
import time

from conversation import QUESTION, book, connected, refused, say, told

ATTEMPTS = 4
"""One a second, which is the study's window."""


async def main() -> None:
    """The old connection stays open all the time, as far as this client's library and kernel know."""
    async with connected() as old:
        call = await book(old)
        await asyncio.to_thread(told, "cut")
        handle = old.handle
        assert handle is not None
        said_no = []
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            said_no.append(await refused(handle))
            await asyncio.sleep(began + 1.0 - time.monotonic())
        say("locked", refused=sum(said_no), attempts=len(said_no))
        await asyncio.to_thread(told, "healed")
        say("path_back", refused=await refused(handle))
        closing_at = time.monotonic()
    # Closed with 1000, and answered: the SDK waits for it.
    say("closed", took_s=time.monotonic() - closing_at)
    async with connected(handle) as talk:
        say("resumed", session_id=talk.session.session_id)
        await talk.respond(call)
        await talk.until("turn")
        say("answer", text=await talk.answer_to(QUESTION))
    say("done")


asyncio.run(main())
