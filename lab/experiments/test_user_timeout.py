"""Question: does TCP_USER_TIMEOUT bound the silence of a busy flow?

Topology: client, router, server in a row; the client sends one line into the hole.

Prediction: yes, shorter and longer than what ``tcp_retries2`` gives: death at the first timeout copy plus the user
timeout, the last wait cut to end on it (``tcp_clamp_rto_to_user_timeout``).

Look at: ``observation.client`` in ``record.json``: the last interval is shorter than the doubling asks for.
"""

import pytest

from lab.experiments.common import both_families, one_send, quiet_client
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec

SHORTER = one_send(name="user-timeout-shorter", client=quiet_client("--user-timeout", "2.5"))
LONGER = one_send(name="user-timeout-longer", client=quiet_client("--user-timeout", "9"))


@pytest.mark.parametrize("spec", [*both_families(SHORTER, "shorter"), *both_families(LONGER, "longer")])
def test_user_timeout_decides_instead_of_retries2(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.USER_TIMEOUT, spec.client
    assert record.observation.client.errno == "ETIMEDOUT"
