"""What the controller refuses, and why: each is a problem document with a status of its own."""

from collections.abc import Sequence
from typing import Any, ClassVar

from lab.core.errors import UsageError
from lab.core.flow import FourTuple


class Refusal(UsageError):
    """Base of what a client may have got wrong.

    Args:
        message: What was expected and what was seen.
        fix: The one line that mends it.
        facts: Further members of the problem document, JSON values.
    """

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "bad-request"
    """Hyphenated, stable: clients look for it."""

    def __init__(self, message: str, *, fix: str | None = None, **facts: Any) -> None:
        super().__init__(message, fix=fix)
        self.facts = facts


class UnknownFault(Refusal):
    """An id that the controller never gave, or has forgotten."""

    status, kind = 404, "unknown-fault"

    def __init__(self, name: str) -> None:
        super().__init__(f"No fault has the id {name!r}.", fix="GET /faults lists them")


class NoSuchFlow(Refusal):
    """The flow to cut does not pass here."""

    status, kind = 404, "no-such-flow"

    def __init__(self, wanted: str, flows: Sequence[FourTuple]) -> None:
        super().__init__(
            f"No open flow is {wanted}; {len(flows)} pass this router.",
            fix="GET /flows lists them; must_exist=false cuts one that is yet to come",
            flows=[as_json(flow) for flow in flows],
        )


class AmbiguousFlow(Refusal):
    """Several flows match a selector."""

    status, kind = 409, "ambiguous-flow"

    def __init__(self, port: int, flows: Sequence[FourTuple]) -> None:
        super().__init__(
            f"{len(flows)} flows go to port {port}; one was expected.",
            fix='say which: "which": "first", "newest" or the port of the client',
            flows=[as_json(flow) for flow in flows],
        )


class OtherFaultInForce(Refusal):
    """The flow is cut already, in another way."""

    status, kind = 409, "other-fault-in-force"

    def __init__(self, flow: FourTuple, name: str) -> None:
        super().__init__(
            f"{flow} is cut by fault {name} with other parameters.", fix=f"DELETE /faults/{name} first", fault=name
        )


class NoCapture(Refusal):
    """There is no capture to read."""

    status, kind = 503, "no-capture"


class Closing(Refusal):
    """The controller is about to end."""

    status, kind = 503, "closing"

    def __init__(self) -> None:
        super().__init__("The controller heals what is cut and ends; it takes no more orders.")


def as_json(flow: FourTuple) -> dict[str, str]:
    """A flow as the API writes it."""
    return {"client": str(flow.client), "server": str(flow.server)}
