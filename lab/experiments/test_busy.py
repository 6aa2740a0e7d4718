"""Question: who gives up when an established flow goes dark while both sides are sending?

Topology::

    client <===x===> router <===x===> server
    bystander <------------------------> bystander

Prediction: both kernels, each by ``tcp_retries2``, at the first expiry at or past its bound after the first timeout
copy (docs/model.md). Keepalive steps aside while data is in flight. The bystander never notices.

Look at: ``figure.png`` (``lab report`` draws it): copies and give-up of both lanes against the predicted windows.
"""

from dataclasses import replace

import pytest

from lab.experiments.common import both_families, client, one_send, server
from lab.report.record import Cause, NoticedBy, Outcome, Record
from lab.run.spec import RunSpec

BOTH = one_send(name="busy-both-ways", server=server("--interval", "0.25"), client=client(), actions=(), writes_on=True)
KEEPALIVE = replace(BOTH, name="busy-keepalive", client=client("--keepalive", "1/1/2"))


@pytest.mark.parametrize("spec", both_families(BOTH))
def test_both_kernels_and_both_programs_give_up(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    for end in (record.observation.client, record.observation.server):
        assert end.cause is Cause.RETRIES2
        assert end.errno == "ETIMEDOUT"
    assert record.observation.client.noticed_by is NoticedBy.ERROR
    assert record.observation.bystander.alive, f"the second flow shares the path of {spec.name}"
    assert record.observation.bystander.lost == 0


@pytest.mark.parametrize("spec", both_families(KEEPALIVE))
def test_keepalive_has_no_effect_while_busy(spec: RunSpec, record: Record) -> None:
    """Three seconds of keepalive would have ended it first; the retransmission timer decides instead."""
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.RETRIES2, spec.name
    assert record.observation.client.gave_up_s is not None
    assert record.observation.client.gave_up_s > 5
