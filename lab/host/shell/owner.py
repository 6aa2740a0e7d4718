"""Whose a host is."""

from collections.abc import Callable
from typing import Protocol

from lab.host.protocol.messages import Answer, FinalizeSimulation

NO_JOB = "this host belongs to a session: it has no simulation"


class Owner(Protocol):
    """Whose host it is: a job."""

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
        """The simulator wants its verdict; ``SessionHost.answer`` takes it."""

    def lost(self, why: str) -> None:
        """The transport is gone, and the host with it."""


class NoOwner:
    """In the place of a job, where a host is a session's own.

    Args:
        answered: Takes the request, the answer or None, and what is wrong with it.
    """

    def __init__(self, answered: Callable[[str, Answer | None, str | None], None]) -> None:
        self._answered = answered

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:  # noqa: ARG002 -- the owner's port has it
        """See ``Owner``: there is no verdict."""
        self._answered(request_id, None, NO_JOB)

    def lost(self, why: str) -> None:
        """See ``Owner``: nobody hears it."""
