"""Question: is ``tcp_retries2`` a count?

Topology: client, router, server in a row; the client sends one line into the hole.

Prediction: no, a duration. The kernel turns the count into a bound (``tcp_model_timeout``) and dies at the first expiry
at or past it, counted from the first timeout copy. The retransmissions on the wire are the kernel's TcpRetransSegs.

Look at: ``observation.client.copy_times_s`` against ``prediction.client.sending`` in ``record.json``.
"""

import pytest

from lab.experiments.common import FAST, LINUX, both_families, each, one_send, sysctls
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec

REAL_TIME = {f"real-time-{n}": one_send(profile=LINUX, sysctls=sysctls({"retries2": n})) for n in (3, 5, 6)}
TIME_LAPSE = {f"time-lapse-{n}": one_send(profile=FAST, sysctls=sysctls({"retries2": n})) for n in (3, 5, 6, 8, 15)}
IPV6 = both_families(TIME_LAPSE["time-lapse-5"], "time-lapse-5")[1:]

STUDY = one_send(name="study-server", profile=FAST, sysctls=sysctls({"retries2": 10, "rto_max_ms": 30_000}))


@pytest.mark.parametrize("spec", [*each(REAL_TIME), *each(TIME_LAPSE), *IPV6])
def test_death_at_the_first_expiry_past_the_bound(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.RETRIES2, spec.name
    assert record.counters["client"]["TcpRetransSegs"] == record.observation.client.copies


@pytest.mark.slow
@pytest.mark.parametrize("spec", both_families(STUDY))
def test_study_server_sends_eleven_copies_and_is_gone_after_two_and_a_half_minutes(
    spec: RunSpec, record: Record
) -> None:
    """The published study's server: last copy 114 to 118 s after the send, death at 141 to 150 s."""
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.copies == 11, spec.profile.name
    assert end.first_lost_s is not None
    assert end.last_copy_s is not None
    assert end.gave_up_s is not None
    assert 114 <= end.last_copy_s - end.first_lost_s <= 118
    assert 141 <= end.gave_up_s - end.first_lost_s <= 150
