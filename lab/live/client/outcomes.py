"""What both links ask of websockets, and what its exceptions mean for an attempt."""

from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

from lab.live.client.link import Failed, Phase, Refused
from lab.live.protocol.wire import ProtocolError
from lab.programs.report import errno_name

CONNECT_OPTIONS: dict[str, Any] = {
    "open_timeout": None,
    "ping_interval": None,
    "close_timeout": None,
    "max_queue": None,
    "max_size": None,
}
"""No keepalive of its own: the watchdog's is stricter, and ``close_timeout`` would come on top of it. No waiting for a
consumer. No deadline by the wall, where session time may run faster."""


def outcome_of(error: BaseException, phase: Phase) -> Refused | Failed | None:
    """What an attempt's exception means; None for one that is no outcome of an attempt.

    Args:
        error: What was raised.
        phase: How far the attempt had come.
    """
    match error:
        case Refused() | Failed():
            return error
        case InvalidStatus():
            return Refused(error.response.status_code, error.response.reason_phrase, Phase.UPGRADE)
        case ConnectionClosed() if error.rcvd is not None:
            return Refused(error.rcvd.code, error.rcvd.reason, phase)
        case ConnectionClosed():
            return Failed("the connection ended without a close frame", phase)
        case ProtocolError():
            return Failed(f"the server's answer is not the protocol: {error}", phase)
        case InvalidHandshake() | InvalidMessage():
            return Failed(f"no WebSocket handshake: {error}", phase)
        case EOFError():
            return Failed("the connection ended during the handshake", phase)
        case OSError():
            return Failed(errno_name(error) or str(error), phase)
    return None
