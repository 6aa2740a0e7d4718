"""Question: does it matter where the drop sits?

Topology::

    client --x-- router ---- server        own OUTPUT: the client's stack is told that the segment never left
    client ---- router --x-- server        router: it believes that the segment is on its way

Prediction: in the router, the usual copies and the retransmission timer. In the client's own OUTPUT no packet ever
leaves, TcpRetransSegs stays 0 and the socket shows the probe timer; the error comes all the same. A trace of it looks
loss-free, which is why the lab never cuts there.

Look at: ``left.pcapng`` of both runs; ``observation.client.copies``.
"""

import pytest

from lab.core.fault import Cut, Placement
from lab.experiments.common import both_families, one_send
from lab.report.record import Outcome, Record
from lab.run.spec import RunSpec

ROUTER = one_send(name="router", direction=Cut.FORWARD)
OWN_OUTPUT = one_send(name="own-output", direction=Cut.FORWARD, placement=Placement.OWN_OUTPUT)


@pytest.mark.parametrize("spec", both_families(ROUTER))
def test_in_the_router_every_copy_leaves_the_sender(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (record.observation.client.copies or 0) >= 5, spec.placement.value


@pytest.mark.parametrize("spec", both_families(OWN_OUTPUT))
def test_in_the_own_output_nothing_leaves_and_nothing_counts_as_resent(spec: RunSpec, record: Record) -> None:
    """The run is INVALID by design: its rule dropped packets that no capture saw. That is the finding."""
    assert record.outcome is Outcome.INVALID, spec.placement.value
    assert record.reason is not None
    assert "rule-equals-capture-forward" in record.reason
    assert record.observation.client.copies == 0
    assert record.counters["client"].get("TcpRetransSegs", 0) == 0
    assert (record.fault.matched.forward or 0) > 0, "the rule did drop packets"
