"""A program whose released session has its server told by another connection, at the status port."""

import json
import sys
import urllib.request
import weakref
from collections.abc import Sequence
from typing import Any

from lab.live.lifecycle import releaser
from lab.live.lifecycle.session import LiveSession

STATUS_PORT = 8766
URL = f"http://server:{STATUS_PORT}"

init = LiveSession.__init__


def tell() -> None:
    with urllib.request.urlopen(f"{URL}/status", timeout=5) as answer:
        sessions = json.load(answer)["sessions"]
    wanted = json.dumps({"session": sessions[0]["id"], "dismiss": True}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{URL}/close", wanted), timeout=5).close()


def init_and_tell(self: LiveSession, *args: Any, **named: Any) -> None:
    init(self, *args, **named)
    weakref.finalize(self, tell)


def main(argv: Sequence[str] | None = None) -> int:
    LiveSession.__init__ = init_and_tell  # type: ignore[method-assign]
    return releaser.main(argv)


if __name__ == "__main__":
    sys.exit(main())
