"""Unknown fields that the real service is known to refuse; every other unknown field is ignored here.

The service's JSON reader refuses any field that its own definition lacks. That definition is not public as a whole and
grows, so that a list of what is known would refuse clients newer than the list: what was seen refused is named instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.live.protocol import errors, messages, names
from lab.live.protocol.paths import EndpointKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """One field that is refused."""

    name: str
    """As the service knows it, in camel case."""

    at: str
    """Path of the message that lacks it."""

    of: Callable[[messages.ClientMessage], Any]
    """That message in a client's one, None where it is not there."""

    kinds: frozenset[EndpointKind]
    """By which paths the service refuses it."""

    source: str
    """Where it was seen."""


TRANSPARENT = Refusal(
    "transparent",
    "setup.session_resumption",
    lambda message: message.session_resumption if isinstance(message, messages.Setup) else None,
    frozenset({EndpointKind.DEVELOPER, EndpointKind.CONSTRAINED}),
    "the study, P1: closed with 1007 on the Developer API; Vertex has the field",
)

REFUSALS = (TRANSPARENT,)


def check(message: messages.ClientMessage, kind: EndpointKind) -> None:
    """Let a message pass.

    Raises:
        ProtocolError: it has a field that the service refuses on this path.
    """
    for rule in REFUSALS:
        found = rule.of(message) if kind in rule.kinds else None
        for key in found.extra if found is not None else ():
            if names.camel(key) == rule.name:
                raise errors.unknown_name(key, rule.at)
