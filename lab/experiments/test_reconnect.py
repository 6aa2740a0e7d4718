"""Question: what does a new connection meet while the old one is dark?

Topology::

    client ==old==x== router ======== server
    client ==new===== router ======== server        scope flow: it passes
    client ==new==x== router ======== server        scope host: it does not

Prediction: a flow-wide hole lets it pass, which is the real test of a client that reconnects; a host-wide hole swallows
its SYN too. The bystander (over the other family where the host is dark) never notices either.

Look at: ``observation.reconnected`` in ``record.json``.
"""

import pytest

from lab.core.fault import Scope
from lab.experiments.common import both_families, one_send
from lab.report.record import Outcome, Record
from lab.run.spec import RunSpec

FLOW = one_send(name="flow-scope", reconnect_at_s=0.5)
HOST = one_send(name="host-scope", reconnect_at_s=0.5, scope=Scope.HOST)


@pytest.mark.parametrize("spec", both_families(FLOW))
def test_it_passes_where_one_flow_is_dark(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.reconnected is True, spec.scope.value


@pytest.mark.parametrize("spec", both_families(HOST))
def test_it_is_lost_where_the_host_is_dark(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.reconnected is False, spec.scope.value
    assert record.observation.bystander.alive
