"""A conversation with a person: what is typed is said, and every loss is recovered from without being asked."""

import asyncio

from lab.core.errors import UsageError
from lab.live.client.assistant import Assistant
from lab.live.client.link import Failed, Refused

CONNECT_S = 10.0

HELP = "/say CLIP speaks a clip, /drop aborts the connection, /close closes it, /quit ends; all else is typed."


async def keep(assistant: Assistant) -> None:
    """Recover from each loss, and from a connection that the server will end, until the policy gives up."""
    after = 0
    while True:
        place, event = await assistant.events.wait_for("lost", "go_away", "given_up", after=after)
        after = place + 1
        if event.name == "given_up":
            return
        if event.name == "go_away":
            assistant.drop("close")
        await assistant.recover()


class Talk:
    """Obeys what a person types.

    Args:
        assistant: Who acts.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def hear(self, line: str | None) -> None:
        """Take a line; None is the end."""
        self._lines.put_nowait(line)

    async def run(self) -> bool:
        """Open a connection and obey until the end; whether it stayed usable."""
        try:
            await self._assistant.open(handle=None, transparent=False, timeout_s=CONNECT_S)
        except (Refused, Failed):
            return False  # Told already.
        keeping = asyncio.ensure_future(keep(self._assistant))
        try:
            obeying = asyncio.ensure_future(self._obey_all())
            await asyncio.wait({keeping, obeying}, return_when=asyncio.FIRST_COMPLETED)
            usable = not keeping.done()
            obeying.cancel()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, obeying, return_exceptions=True)
        await self._assistant.say_goodbye()
        self._assistant.account()
        return usable

    async def _obey_all(self) -> None:
        while (line := await self._lines.get()) is not None and line.strip() != "/quit":
            await self._obey(line.strip())

    async def _obey(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "":
                pass
            case "/say":
                try:
                    await self._assistant.say(rest.strip() or "book")
                except UsageError as error:
                    self._assistant.events.tell("help", text=str(error))
            case "/drop" | "/close":
                self._assistant.drop("abort" if word == "/drop" else "close")
                await self._assistant.recover()
            case _ if word.startswith("/"):
                self._assistant.events.tell("help", text=HELP)
            case _:
                self._assistant.type(line)
