"""Question: when does an idle end learn that its path is dark?

Topology::

    client ----x---- router ----x---- server        nobody sends anything

Prediction: never without keepalive (RFC 1122 section 4.2.3.6). With keepalive at idle + interval x count; a user
timeout overrides the count, shorter or longer: death at the first probe expiry past it. A user timeout alone does
nothing.

Look at: ``left.pcapng``: the probes one octet below the next sequence number, and the RST of the death.
"""

import pytest

from lab.experiments.common import LINUX, both_families, each, one_send, quiet_client
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec

NO_KEEPALIVE = one_send(name="idle", profile=LINUX, actions=(), watch_s=12.0)
USER_TIMEOUT_ALONE = one_send(
    name="idle-user-timeout", profile=LINUX, actions=(), watch_s=12.0, client=quiet_client("--user-timeout", "3")
)


def idle(*options: str) -> RunSpec:
    """An idle client with these socket options."""
    return one_send(profile=LINUX, actions=(), client=quiet_client(*options))


KEEPALIVE = {
    "idle1-interval1-count2": idle("--keepalive", "1/1/2"),
    "idle1-interval2-count2": idle("--keepalive", "1/2/2"),
    "idle2-interval1-count3": idle("--keepalive", "2/1/3"),
    "idle4-interval2-count3": idle("--keepalive", "4/2/3"),
    "idle3-interval1-count5": idle("--keepalive", "3/1/5"),
}
WITH_USER_TIMEOUT = {
    "shorter": idle("--keepalive", "2/1/5", "--user-timeout", "3.5"),
    "much-shorter": idle("--keepalive", "2/1/5", "--user-timeout", "0.5"),
    "longer": idle("--keepalive", "2/1/2", "--user-timeout", "6.5"),
}


@pytest.mark.parametrize("spec", [*both_families(NO_KEEPALIVE), *both_families(USER_TIMEOUT_ALONE, "user-timeout")])
def test_nobody_ever_notices(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.never_told
    assert record.observation.server.never_told
    assert record.horizon_s is not None
    assert record.horizon_s >= (spec.watch_s or 0)


@pytest.mark.parametrize(
    "spec", [*each(KEEPALIVE), *both_families(KEEPALIVE["idle2-interval1-count3"], "idle2-interval1-count3")[1:]]
)
def test_keepalive_ends_it_by_count(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause is Cause.KEEPALIVE
    assert set(end.copy_classes) == {"keepalive-probe"}, spec.client
    assert record.counters["client"]["TcpExtTCPKeepAlive"] >= (end.copies or 0), "answered ones before the cut too"
    assert record.counters["client"].get("TcpRetransSegs", 0) == 0
    assert record.observation.server.never_told


@pytest.mark.parametrize(
    "spec", [*each(WITH_USER_TIMEOUT), *both_families(WITH_USER_TIMEOUT["shorter"], "shorter")[1:]]
)
def test_user_timeout_overrides_the_count(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause in (Cause.KEEPALIVE, Cause.USER_TIMEOUT), spec.client
    assert set(end.copy_classes) == {"keepalive-probe"}
    options = record.sockets.client.options or {}
    assert end.copies != options["keepalive_count"], "the count alone would send as many"
