"""Question: what does each side learn when only one direction goes dark?

Topology::

    client ====x====> router -------> server      forward only: the request never arrives
    client <---x----- router <======= server      return only: the server has it, the client is never told

Prediction: the client's kernel sees the same silence and gives up the same way in both (``tcp_retries2``). Forward
only, the server is idle and never told. Return only, the server has the request and sends its reply into the hole, so
its kernel gives up too.

Look at: ``server.log`` (did the request arrive?), ``observation.server`` in ``record.json``.
"""

from pathlib import Path

import pytest

from lab.core.fault import Cut
from lab.experiments.common import both_families, one_send
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec


@pytest.mark.parametrize("spec", both_families(one_send(name="forward-only", direction=Cut.FORWARD)))
def test_request_lost_and_server_never_told(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.RETRIES2
    assert record.observation.client.errno == "ETIMEDOUT"
    assert record.observation.server.never_told
    assert record.fault.matched.return_ == 0, f"{spec.direction.value} alone was cut"
    assert '"total": 28' not in (folder / "server.log").read_text(), "a fourth line of seven octets never arrived"


@pytest.mark.parametrize("spec", both_families(one_send(name="return-only", direction=Cut.RETURN)))
def test_request_arrived_and_client_is_never_told(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.errno == "ETIMEDOUT"
    assert record.observation.server.cause is Cause.RETRIES2, "its reply went into the hole"
    assert record.fault.matched.forward == 0, f"{spec.direction.value} alone was cut"
    assert '"total": 28' in (folder / "server.log").read_text(), "the fourth line of seven octets arrived"
