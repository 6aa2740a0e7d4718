"""What a host says in place of a message that cannot be: whoever waits for it hears why."""

from lab.host.protocol.errors import FrameTooLong, Unsayable
from lab.host.protocol.messages import ErrorTold, Event, Message, Response, SessionClosed


def instead(message: Message, error: FrameTooLong | Unsayable) -> list[Message]:
    """What may be said, best first; nothing where nobody waits.

    Args:
        message: Which is too long, or holds what none can.
        error: By how much, or what that is.
    """
    match message:
        case Response(request_id=name):
            told = f"A request's id of {len(name)} characters leaves no room for an answer. Fix: give it a shorter one."
            return [Response(name, error=str(error)), Event(ErrorTold(told))]
        case Event(SessionClosed(reason)):
            return [Event(SessionClosed(reason, str(error)))]
        case _:
            return []
