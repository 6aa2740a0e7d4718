"""Why a session ended, in its own words, and how that is told."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lab.host.protocol.messages import CloseReason


class EndCause(enum.StrEnum):
    """Why a session ended; the values are the words of livekit-agents 1.8.9."""

    ERROR = "error"
    JOB_SHUTDOWN = "job_shutdown"
    PARTICIPANT_DISCONNECTED = "participant_disconnected"
    USER_INITIATED = "user_initiated"
    TASK_COMPLETED = "task_completed"


TOLD: Mapping[str, CloseReason] = MappingProxyType(
    {
        EndCause.ERROR: CloseReason.ERROR,
        EndCause.JOB_SHUTDOWN: CloseReason.JOB_SHUTDOWN,
        EndCause.PARTICIPANT_DISCONNECTED: CloseReason.PARTICIPANT_DISCONNECTED,
        EndCause.USER_INITIATED: CloseReason.USER_INITIATED,
        EndCause.TASK_COMPLETED: CloseReason.COMPLETED,
    }
)
"""How each is told."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended."""

    cause: str
    """An ``EndCause``, or a later version's word."""

    error: str | None = None

    @property
    def reason(self) -> CloseReason:
        """How it is told; a word that this version does not know is told as unknown."""
        return TOLD.get(self.cause, CloseReason.UNKNOWN)
