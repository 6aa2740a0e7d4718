"""What the programs of livekit-agents say, and its own TCP transport watched; it does nothing else than it would."""

import json
import sys
import time
from typing import Any

from livekit.agents.voice.remote_session import TcpSessionTransport


def say(event: str, **detail: object) -> None:
    """Print one event, as the lab's programs do: in one write, since a relay may print into the same pipe."""
    sys.stdout.write(json.dumps({"at": time.monotonic(), "event": event, **detail}) + "\n")
    sys.stdout.flush()


class Seen(TcpSessionTransport):  # type: ignore[misc]  # livekit-agents has an environment of its own
    """Says which events come, and when nothing more does."""

    async def __anext__(self) -> Any:
        """The next message, as it is."""
        try:
            message = await super().__anext__()
        except StopAsyncIteration:
            say("nothing_more")
            raise
        if message.WhichOneof("message") == "event":
            say("came", what=message.event.WhichOneof("event"))
        return message
