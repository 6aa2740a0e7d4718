"""A program that ends with its sessions open: ``python -m lab.live.lifecycle.leaver '{"variant": ..., "to": [...]}'``.

``to`` is a list of [URL, model]. It prints its local ports as a JSON list, waits for a line on standard input, and
ends: its sessions are held to the last, and its event loop stands still by then.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from lab.live.lifecycle.session import LiveSession
from lab.live.lifecycle.variant import VARIANTS
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import SessionResumption, Setup
from lab.programs.report import say

_held: list[Any] = []
"""What is still there when the interpreter ends."""


def main(argv: Sequence[str] | None = None) -> int:
    """Connect, tell, wait, and end."""
    wanted = json.loads((sys.argv[1:] if argv is None else argv)[0])
    variant = VARIANTS[wanted["variant"]]
    ports: list[int] = []

    def session(url: str, model: str) -> LiveSession:
        def make() -> WebSocketWire:
            return WebSocketWire(url, connected=lambda ours, _: ports.append(ours[1]))

        return LiveSession(make, Setup(model, session_resumption=SessionResumption()), variant)

    async def connect() -> None:
        for url, model in wanted["to"]:
            _held.append(session(url, model))
            await _held[-1].connect()

    loop = asyncio.new_event_loop()
    _held.append(loop)
    loop.run_until_complete(connect())
    say("connected", ports=ports)
    sys.stdin.readline()
    return 0


if __name__ == "__main__":
    sys.exit(main())
