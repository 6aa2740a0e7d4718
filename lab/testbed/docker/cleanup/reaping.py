"""Inside the reaper's container: waits until its owner has ended, then removes everything of that owner.

Usage: ``python -m lab.testbed.docker.cleanup.reaping NAME API-VERSION IDENTITY BOOT``. The engine's socket and the
folder with the owner's socket are mounted where ``ENGINE`` and ``FOLDER`` say.
"""

import http.client
import socket
import sys
from pathlib import Path
from typing import Final

from lab.testbed.docker.cleanup.removal import remove_all_of
from lab.testbed.docker.labels import Owner
from lab.testbed.docker.wire import Api, Refused

ENGINE: Final = "/run/blackhole-lab/engine.sock"
FOLDER: Final = "/run/blackhole-lab/owner"
SOCKET: Final = "reaper.sock"

READY: Final = b"ready\n"
"""Said to the owner once everything is in place."""

DISMISSED: Final = b"bye\n"
"""Said by an owner that has left nothing behind."""

_LONGEST_LINE = 1 << 16


def main(arguments: list[str]) -> int:
    """Wait, and remove.

    Args:
        arguments: This container's name, the version of the engine's API, identity and boot of the owner.

    Returns:
        0 when nothing is left.
    """
    name, version, identity, boot = arguments
    api = Api(Path(ENGINE), version)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as owner:
        owner.connect(f"{FOLDER}/{SOCKET}")
        try:
            api.get("containers", name, "json")
        except (Refused, OSError, http.client.HTTPException) as error:
            owner.sendall(f"the reaper cannot use the engine's socket: {error}\n".encode())
            return 1
        owner.sendall(READY)
        if is_dismissed(owner):
            return 0
    return 0 if remove_all_of(api, Owner(identity, boot), spare=name) else 1


def is_dismissed(owner: socket.socket) -> bool:
    """Wait for the owner's end; whether it said that nothing is left."""
    heard = b""
    try:
        while said := owner.recv(_LONGEST_LINE):
            heard += said
            if heard.endswith(DISMISSED):
                return True
    except ConnectionError:
        pass
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
