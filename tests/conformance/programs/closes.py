"""google-genai as it comes, told of every end that there is: a JSON line each.

    closes.py CODE...

The server ends a session as its model's name says in the setup, and as a text says later.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable
from typing import Any

from google import genai
from google.genai import types

NOTHING = "nothing"
TOLD_S = 1.0
"""For what needs no network: the end has come by then."""

END_S = 20.0


def worded(error: BaseException) -> str:
    """An error with its code, if it has one: the SDK's, or that of websockets."""
    received = getattr(error, "rcvd", None)
    code = getattr(error, "code", None) if received is None else received.code
    return type(error).__name__ if code is None else f"{type(error).__name__}: {code}"


async def told(waiting: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(TOLD_S):
            await waiting
    except TimeoutError:
        return NOTHING
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return worded(error)
    return "no error"


async def read(session: Any) -> None:
    """Read on as an application does: every call ends with a turn."""
    while True:
        empty = True
        async for _ in session.receive():
            empty = False
        if empty:
            return


async def row(client: genai.Client, phase: str, wish: str, by: str, code: int) -> dict[str, object]:
    connect, reader, sender = "no error", "-", "-"
    config = types.LiveConnectConfig(response_modalities=["AUDIO"])
    try:
        async with asyncio.timeout(END_S):
            model = wish if phase == "setup" else "m"
            async with client.aio.live.connect(model=model, config=config) as session:
                if by == "us":
                    await session.close()
                elif phase == "open":
                    await session.send_realtime_input(text=wish)
                reader = await told(read(session))
                sender = await told(session.send_realtime_input(text="late"))
    except Exception as error:  # noqa: BLE001 - the same
        connect = worded(error)
    return {"phase": phase, "code": code, "by": by, "connect": connect, "reader": reader, "sender": sender}


async def main() -> None:
    client = genai.Client()
    codes = [int(code) for code in sys.argv[1:]]
    asked = [(phase, f"end {code}", "server", code) for phase in ("setup", "open") for code in codes]
    asked += [(phase, "vanish", "network", 1006) for phase in ("setup", "open")]
    asked += [("open", "", "us", 1000)]
    for found in await asyncio.gather(*(row(client, *one) for one in asked)):
        print(json.dumps({"event": "row", "release": genai.__version__, **found}), flush=True)


asyncio.run(main())
