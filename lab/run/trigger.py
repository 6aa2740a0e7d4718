"""What a fault follows that no clock can tell: a line of a program's output."""

import re
from dataclasses import dataclass

from lab.core.errors import UsageError

ENDS = ("client", "server")

WITHIN_S = 60.0
"""How long a line is waited for that has no other limit."""


@dataclass(frozen=True, slots=True)
class LineTrigger:
    """A line of one end's program that something follows."""

    node: str
    """client or server."""

    pattern: str
    """Regular expression that is searched for in each line, of standard output and standard error alike."""

    delay_s: float = 0.0
    """Between the line and what follows it."""

    within_s: float = WITHIN_S
    """How long the line may take: from the cut on, and for the cut itself from the moment when it could be done."""

    def __post_init__(self) -> None:
        if self.node not in ENDS:
            raise UsageError(f"Lines are read of {' and '.join(ENDS)}; there is no program {self.node!r}.")
        if self.delay_s < 0:
            raise UsageError(f"Nothing can come before the line that it follows; {self.delay_s:g} s were asked for.")
        if self.within_s <= 0:
            raise UsageError(f"A line needs some time to come; {self.within_s:g} s were given.")
        require_expression(self.pattern)


def parse_trigger(text: str, delay_s: float = 0.0) -> LineTrigger:
    """A trigger as it is typed: the expression alone for the client's output, ``server:`` before it for the server's.

    Args:
        text: ``REGEX``, ``client:REGEX`` or ``server:REGEX``.
        delay_s: Between the line and what follows it.

    Raises:
        UsageError: it is no regular expression.
    """
    node, colon, pattern = text.partition(":")
    if colon and node in ENDS:
        return LineTrigger(node, pattern, delay_s)
    return LineTrigger("client", text, delay_s)


def require_expression(pattern: str) -> None:
    """See that it is a regular expression.

    Raises:
        UsageError: it is not.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{pattern!r} is no regular expression: {error}.", fix=f"for this text as it stands: {re.escape(pattern)}"
        ) from error
