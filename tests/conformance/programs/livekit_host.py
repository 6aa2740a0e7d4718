"""The released SessionHost, unmodified, on its own TCP transport; it obeys lines on standard input.

    livekit_host.py HOST PORT

``register`` starts an AgentSession and registers it, ``close-session`` closes it, ``close-host`` ends the host and the
program. Each is answered by a JSON line.
"""

import asyncio
import json
import sys

from livekit.agents import Agent, AgentSession
from livekit.agents.voice.remote_session import SessionHost, TcpSessionTransport


def say(event: str) -> None:
    print(json.dumps({"event": event}), flush=True)


async def main() -> None:
    host = SessionHost(TcpSessionTransport(sys.argv[1], int(sys.argv[2])))
    await host.start()
    session = AgentSession()
    say("serving")
    loop = asyncio.get_running_loop()
    while True:
        line = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
        if line == "register":
            host.register_session(session)
            await session.start(Agent(instructions="Follow the script."))
        elif line == "close-session":
            await session.aclose()
        else:
            await host.aclose()
            say("done")
            return
        say(line)


asyncio.run(main())
