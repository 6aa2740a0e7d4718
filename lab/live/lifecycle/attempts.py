"""An attempt to connect: the setup and its answer, and what a refusal means for a session that was just closed."""

import contextlib

from lab.live.lifecycle import endings
from lab.live.lifecycle.endings import Closure, SessionError, SetupRefused
from lab.live.lifecycle.socket import LiveSocket
from lab.live.lifecycle.variant import Variant
from lab.live.protocol import closing, wire
from lab.live.protocol.messages import ServerMessage, Setup

SETTLES_S = 3.0
"""How long after a close of ours a resume that is refused is tried again. A session that was closed while its model was
idle is locked for a moment: less than 1.5 s in the study (``lab.live.session.states``)."""

AGAIN_S = 0.25
"""Between two of these attempts; the refusal itself takes a server half a second."""


async def set_up(socket: LiveSocket, setup: Setup, variant: Variant) -> list[ServerMessage]:
    """Send the setup; what came up to its answer. As published, a stream that ends normally passes for one.

    Args:
        socket: A new connection; somebody receives from it.
        setup: The first message.
        variant: Whose rules.

    Raises:
        SessionError: the server refused, or the connection was lost.
    """
    came = []
    with contextlib.suppress(SessionError):  # the stream tells of the same end
        await socket.send(wire.encode(setup))
    try:
        async for data in socket.messages:
            came.append(wire.parse_server(data))
            if came[-1].setup_complete is not None:
                return came
    except SessionError as error:
        raise refusal(setup, endings.closure_of(error), variant) from None
    except wire.ProtocolError as error:
        raise SessionError(f"The server's answer to the setup is not the protocol: {error}") from None
    if variant.names_setup_errors and socket.recorded is not None:
        raise refusal(setup, socket.recorded, variant)
    return came


def refusal(setup: Setup, closure: Closure, variant: Variant) -> SessionError:
    """What is said of an end before the setup's answer.

    Args:
        setup: Of the attempt.
        closure: The end.
        variant: Whose rules.
    """
    if variant.names_setup_errors:
        return endings.refused(closure, resuming=_resumes(setup))
    return endings.unexpected(closure)


def settles(setup: Setup, error: SetupRefused, closed_s: float | None) -> bool:
    """Whether a refusal may be over in a moment. A server does not say why it refuses.

    Args:
        setup: What it refused.
        error: The refusal.
        closed_s: How long ago it answered a close of ours; None: it never did. One that has not seen the close holds
            the session for as long as it takes the connection for alive, which is no moment.
    """
    locked = error.closure is not None and error.closure.code == closing.INTERNAL_ERROR.code
    return locked and _resumes(setup) and closed_s is not None and closed_s < SETTLES_S


def _resumes(setup: Setup) -> bool:
    return setup.session_resumption is not None and setup.session_resumption.handle is not None
