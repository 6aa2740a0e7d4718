"""Starts the reaper's container, and stands in for it until it has connected to the owner.

A process of its own, because the owner may be killed between the engine's answer to "create" and its own "start",
or before the container is up: then this one removes what is there. It ends once the owner says that the reaper watches.
"""

import contextlib
import http.client
import json
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from lab.testbed.docker.cleanup.removal import remove_all_of
from lab.testbed.docker.labels import Owner
from lab.testbed.docker.wire import Api, Refused

MARK: Final = "blackhole-lab-standby"
"""Among its arguments, before its socket's descriptor and its owner: for whoever looks at the list of processes."""

CONTAINER: Final = "container"
"""What of its order says which container to start; without it there is nothing to start, only to remove."""

RELIEVED: Final = b"relieved\n"
"""Said by the owner once the reaper watches."""

DISMISSED: Final = b"bye\n"
"""Said by an owner that has left nothing behind, save for the reaper's container."""

_CREATE_TIMEOUT_S = 60.0
_HEADER_BYTES = 8
_LONGEST_LINE = 1 << 16
_MOST_SAID = 1 << 13
"""Of a container that fails, what the owner is told."""


def main() -> None:
    """Read what to start from the owner's socket, start it, and wait for the owner's word or end."""
    # Ctrl-C goes to the owner; its end is heard on the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[2])) as owner:
        spec = json.loads(owner.makefile("rb").readline())
        api = Api(Path(spec["engine"]), spec["version"])
        try:
            if CONTAINER in spec:
                _run(api, spec, owner)
        except Exception:  # noqa: BLE001 - whatever it is, the owner is told, and its end is still awaited
            _tell(owner, crashed=traceback.format_exc())
        heard = _last_word(owner)
    if heard == DISMISSED:
        with contextlib.suppress(Refused, OSError, http.client.HTTPException):
            api.delete("containers", spec["name"], force=1)
    elif heard != RELIEVED:
        remove_all_of(api, Owner(*spec["owner"]))


def _run(api: Api, spec: dict[str, Any], owner: socket.socket) -> None:
    """Create, attach, start; then tell the owner where the container ends before the owner relieves this process."""
    slow = Api(api.socket, api.version, _CREATE_TIMEOUT_S)
    try:
        slow.post("containers", "create", body=spec[CONTAINER], name=spec["name"])
        if _has_ended(owner):
            return
        with contextlib.closing(slow.attach(spec["name"])) as output:
            slow.post("containers", spec["name"], "start")
            _await(owner, output)
    except Refused as refused:
        _tell(owner, refused=refused.message)
    except (OSError, http.client.HTTPException) as error:
        _tell(owner, lost=str(error))


def _await(owner: socket.socket, output: http.client.HTTPConnection) -> None:
    """Collect what the container says until the owner says something; tell the owner if the container ends first."""
    said = b""
    output.sock.settimeout(None)
    while True:
        readable, _, _ = select.select([owner, output.sock], [], [])
        if owner in readable:
            return
        some = output.sock.recv(_LONGEST_LINE)
        if not some:
            _tell(owner, ended=_plain(said))
            return
        said = (said + some)[:_MOST_SAID]


def _plain(stream: bytes) -> str:
    """The text of an attached stream: frames of a header, which ends in the length, and output."""
    text = b""
    while len(stream) >= _HEADER_BYTES:
        length = int.from_bytes(stream[4:_HEADER_BYTES], "big")
        text += stream[_HEADER_BYTES : _HEADER_BYTES + length]
        stream = stream[_HEADER_BYTES + length :]
    return text.decode("utf-8", "replace").strip()


def _has_ended(owner: socket.socket) -> bool:
    readable, _, _ = select.select([owner], [], [], 0)
    return bool(readable) and not owner.recv(1, socket.MSG_PEEK)


def _last_word(owner: socket.socket) -> bytes:
    """Wait for it; empty where the owner ended without one."""
    heard = b""
    with contextlib.suppress(ConnectionError):
        while said := owner.recv(_LONGEST_LINE):
            heard += said
            if heard in (RELIEVED, DISMISSED):
                return heard
    return b""


def _tell(owner: socket.socket, **news: str) -> None:
    with contextlib.suppress(OSError):
        owner.sendall(json.dumps(news).encode() + b"\n")
