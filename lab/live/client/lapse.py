"""Tells the server that session time runs by another factor from an instant on."""

import asyncio
import http.client
import json
import urllib.parse

from lab.live.client.link import Failed, Phase
from lab.live.timelapse import Lapse

AHEAD_S = 0.1
"""A lapse begins this long after it is announced, wall seconds, so that neither side's clock jumps: told too late
of a slower pace, the server's would go back."""

TIMEOUT_S = 5.0


async def announce(status: str, lapse: Lapse) -> None:
    """Tell it, over a new connection.

    Args:
        status: The status page's URL.
        lapse: As this side will enter it.

    Raises:
        Failed: the server did not take it.
    """
    try:
        code = await asyncio.to_thread(_post, status, lapse)
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"the server was not told of the lapse: {error}", Phase.CONNECT) from error
    if code >= http.client.BAD_REQUEST:
        raise Failed(f"the server did not take the lapse: HTTP {code}", Phase.UPGRADE)


def _post(status: str, lapse: Lapse) -> int:
    found = urllib.parse.urlsplit(status)
    connection = http.client.HTTPConnection(found.hostname or "", found.port or 80, timeout=TIMEOUT_S)
    try:
        body = json.dumps({"since": lapse.since, "factor": lapse.factor})
        connection.request("POST", f"{found.path.rstrip('/')}/lapse", body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
