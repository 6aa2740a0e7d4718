"""The released RemoteSession, unmodified, on its own TCP transport; it asks what standard input says.

    livekit_asker.py HOST PORT

Lines are ``state`` (which takes no time-out: it has the SDK's, a minute), ``io SECONDS``, ``finalize SECONDS`` and
``close``. Requests go on side by side. How each ended is a JSON line, and so are the events that come, and
``nothing_more`` when the transport has ended.
"""

import asyncio
import sys
import time
from typing import Any

from livekit.agents.voice.remote_session import RemoteSession
from livekit_seen import Seen, say


async def ask(remote: RemoteSession, line: str) -> None:
    what, _, timeout = line.partition(" ")
    began = time.monotonic()
    detail: dict[str, Any] = {}
    try:
        if what == "state":
            found = await remote.get_session_state()
            detail = {"agent": found.agent_id, "agent_state": found.agent_state}
        elif what == "io":
            await remote.update_io(timeout=float(timeout))
        else:
            final = await remote.finalize_simulation(provisional_success=True, timeout=float(timeout))
            detail = {"judged": final.HasField("user_verdict")}
    except (RuntimeError, TimeoutError) as error:
        say("failed", ask=what, why=type(error).__name__, error=str(error), after_s=time.monotonic() - began)
    else:
        say("answered", ask=what, after_s=time.monotonic() - began, **detail)


async def main() -> None:
    remote = RemoteSession(Seen(sys.argv[1], int(sys.argv[2])))
    await remote.start()
    say("started")
    loop = asyncio.get_running_loop()
    asking = []
    while (line := (await loop.run_in_executor(None, sys.stdin.readline)).strip()) not in ("", "close"):
        asking.append(asyncio.create_task(ask(remote, line)))
        say("asked", ask=line)
    await remote.aclose()
    await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 10)
    say("done")


asyncio.run(main())
