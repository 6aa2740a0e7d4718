"""The released SessionHost, unmodified, on its own TCP transport; it obeys lines on standard input.

    livekit_host.py HOST PORT

``register`` starts an AgentSession and registers it, ``hand-over`` gives it another agent, which the host tells,
``close-session`` closes it, ``close-host`` ends the host and the program. Each is answered by a JSON line.
``nothing_more`` is said when its transport has ended.
"""

import asyncio
import sys

from livekit.agents import Agent, AgentSession
from livekit.agents.voice.remote_session import SessionHost
from livekit_seen import Seen, say


async def main() -> None:
    host = SessionHost(Seen(sys.argv[1], int(sys.argv[2])))
    await host.start()
    session = AgentSession()
    say("serving")
    loop = asyncio.get_running_loop()
    while True:
        line = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
        if line == "register":
            host.register_session(session)
            await session.start(Agent(instructions="Follow the script."))
        elif line == "hand-over":
            session.update_agent(Agent(instructions="Follow another script."))
        elif line == "close-session":
            await session.aclose()
        else:
            await host.aclose()
            say("done")
            return
        say(line)


asyncio.run(main())
