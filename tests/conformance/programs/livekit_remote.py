"""The released RemoteSession, unmodified, on its own TCP transport.

    livekit_remote.py HOST PORT

It asks for the session's state, says a turn, waits for a line on standard input, asks again, and ends. Events and
answers are JSON lines.
"""

import asyncio
import json
import sys

from livekit.agents.voice.remote_session import RemoteSession, TcpSessionTransport

EVENTS = ("agent_state_changed", "conversation_item_added", "error")


def say(event: str, **detail: object) -> None:
    print(json.dumps({"event": event, **detail}), flush=True)


async def state(remote: RemoteSession) -> None:
    try:
        found = await remote.get_session_state()
    except RuntimeError as error:
        say("refused", error=str(error))
    else:
        say("state", agent=found.agent_id)


async def main() -> None:
    remote = RemoteSession(TcpSessionTransport(sys.argv[1], int(sys.argv[2])))
    for name in EVENTS:
        remote.on(name, lambda _event, name=name: say("told", name=name))
    await remote.start()
    await state(remote)
    answer = await remote.run("hi")
    say("answer", texts=[item.message.content[0].text for item in answer.items])
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.readline)
    await state(remote)
    await remote.aclose()
    say("done")


asyncio.run(main())
