"""How each end of a session is told."""

import pytest

from lab.host.machine.reasons import EndCause, Ending
from lab.host.protocol.messages import CloseReason


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("error", CloseReason.ERROR),
        ("job_shutdown", CloseReason.JOB_SHUTDOWN),
        ("participant_disconnected", CloseReason.PARTICIPANT_DISCONNECTED),
        ("user_initiated", CloseReason.USER_INITIATED),
        ("task_completed", CloseReason.COMPLETED),
        ("a later version's word", CloseReason.UNKNOWN),
    ],
)
def test_a_cause_has_its_reason(cause: str, reason: CloseReason) -> None:
    assert Ending(cause).reason is reason


def test_every_cause_and_every_reason_is_met() -> None:
    assert {Ending(cause).reason for cause in EndCause} | {CloseReason.UNKNOWN} == set(CloseReason)
