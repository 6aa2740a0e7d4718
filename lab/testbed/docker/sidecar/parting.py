"""How an attachment's container ends: with the namespace that it had joined restored, whatever became of it.

Whoever removes things of the lab's on an engine comes by here: the attachment itself, its owner's reaper, ``lab
clean``. So this module stands on the standard library and the engine's HTTP API alone.
"""

import contextlib
import http
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from lab.testbed.docker.labels import BOOT, LAB, OWNER, ROLE, TESTBED
from lab.testbed.docker.wire import Api, Refused

ATTACH: Final = "attach"
"""The role of a container that has joined a user's one."""

CLEANING: Final = "cleaning"
"""The role of one that restores what such a one left."""

TARGET: Final = f"{LAB}.target"
"""Label: id of the container that was joined."""

CAPABILITIES: Final = ("NET_ADMIN", "NET_RAW")
"""Rules, routes and the device; packet sockets."""

_MODULE: Final = "lab.testbed.docker.sidecar.cleaning"
_ALIVE = ("running", "paused", "restarting")
_GRACE_S = 5
_SLOW_S = 30.0


class NotRestored(Exception):
    """The namespace could not be restored; the container stays, for the next try."""


def part(api: Api, container: str, labels: Mapping[str, str]) -> bool:
    """End an attachment's container, see that its target is as it was, and remove it.

    Args:
        api: Where.
        container: Its id.
        labels: What it carries.

    Returns:
        Whether somebody else than itself had to restore the namespace.

    Raises:
        NotRestored: the namespace could not be restored.
        Refused: the engine does not want to, or the container is gone.
        OSError: the engine does not answer.
    """
    slow = replace(api, timeout_s=_SLOW_S)
    with contextlib.suppress(Refused):
        # It restores by itself when it is told to end; killed, it cannot.
        slow.post("containers", container, "stop", t=_GRACE_S)
    found = api.get("containers", container, "json")
    state = found["State"]
    # One that did not stop has no exit status yet, which reads as 0, and is killed below.
    is_unrestored = state["Status"] in _ALIVE or (state["Status"] != "created" and state["ExitCode"] != 0)
    by_other = is_unrestored and _is_running(api, labels.get(TARGET, ""))
    if by_other:
        _restore(slow, found["Image"], labels)
    api.delete("containers", container, force=1, v=1)
    return by_other


def _is_running(api: Api, container: str) -> bool:
    """Without its programs a namespace is gone, and all that was in it."""
    try:
        return bool(api.get("containers", container, "json")["State"]["Running"])
    except Refused as refused:
        if refused.status == http.HTTPStatus.NOT_FOUND:
            return False
        raise


def _restore(api: Api, image: str, labels: Mapping[str, str]) -> None:
    body: dict[str, Any] = {
        "Image": image,
        "Cmd": [_MODULE],
        "Labels": {**{name: labels.get(name, "") for name in (LAB, OWNER, BOOT, TESTBED)}, ROLE: CLEANING},
        "HostConfig": {"NetworkMode": f"container:{labels[TARGET]}", "CapDrop": ["ALL"], "CapAdd": list(CAPABILITIES)},
    }
    made = api.post("containers", "create", body=body)["Id"]
    try:
        api.post("containers", made, "start")
        status = api.post("containers", made, "wait")["StatusCode"]
    finally:
        api.delete("containers", made, force=1, v=1)
    if status != 0:
        raise NotRestored(f"the cleaning container ended with {status}")
