"""Question: what does a new connection meet while the old one is dark?

Topology::

    client ==old==x== router ======== server
    client ==new===== router ======== server        scope flow: it passes
    client ==new==x== router ======== server        scope host: it does not

Prediction: a flow-wide hole lets it pass, which is the real test of a client that reconnects; a host-wide hole swallows
its SYN too. The bystander (over the other family where the host is dark) never notices either.

Look at: ``observation.reconnected`` in ``record.json``; the new SYN in ``left.pcapng``, and in ``right.pcapng`` or not.
"""

from pathlib import Path

import pytest

from lab.core.fault import Scope
from lab.core.segment import Flag
from lab.experiments.common import both_families, one_send
from lab.pcap import read_segments
from lab.report.record import Outcome, Record
from lab.run.spec import RunSpec

FLOW = one_send(name="flow-scope", reconnect_at_s=0.5)
HOST = one_send(name="host-scope", reconnect_at_s=0.5, scope=Scope.HOST)


def new_syns(record: Record, capture: Path) -> int:
    """How often a SYN between the two hosts of the flow was seen that is not the flow's own."""
    address = (record.flow.client or "").rpartition(":")[0].strip("[]")
    syns = [s for s in read_segments(capture) if s.flags & (Flag.SYN | Flag.ACK) == Flag.SYN]
    return sum(1 for s in syns if s.source.address == address and str(s.source) != record.flow.client)


@pytest.mark.parametrize("spec", both_families(FLOW))
def test_it_passes_where_one_flow_is_dark(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.reconnected is True, spec.scope.value


@pytest.mark.parametrize("spec", both_families(HOST))
def test_it_is_lost_where_the_host_is_dark(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.reconnected is False, spec.scope.value
    assert new_syns(record, folder / "left.pcapng") > 1, "it was tried, and tried again"
    assert new_syns(record, folder / "right.pcapng") == 0
    assert record.observation.bystander.alive
