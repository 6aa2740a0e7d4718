"""Question: does it matter where the drop sits?

Topology::

    client --x-- router ---- server        own OUTPUT: the client's stack is told that the segment never left
    client ---- router --x-- server        router: it believes that the segment is on its way
    client +---- router ---- server        sink: it believes so too, and the segment went into a device of its own
           +--x sink                       namespace; what comes is dropped in its INPUT

Prediction: in the router, the usual copies and the retransmission timer. In the client's own OUTPUT no packet ever
leaves, TcpRetransSegs stays 0 and the socket shows the probe timer; the error comes all the same. A trace of it looks
loss-free, which is why the lab never cuts there. With a sink, the client's or the server's, one namespace alone has a
hole that its stack cannot tell from the router's: the same copies, the same timer, the same end. ``lab attach`` makes
this one.

Look at: ``left.pcapng`` of all runs, ``sink.pcapng`` where there is one; ``observation.client.copies``.
"""

from pathlib import Path

import pytest

from lab.core.fault import Cut, Placement
from lab.core.socket import Timer
from lab.experiments.common import both_families, invalid_by_design, one_send
from lab.pcap import read_packets
from lab.report.record import Cause, Outcome, Record
from lab.report.timeline import read_timeline
from lab.run.spec import RunSpec

ROUTER = one_send(name="router", direction=Cut.FORWARD)
OWN_OUTPUT = one_send(name="own-output", direction=Cut.FORWARD, placement=Placement.OWN_OUTPUT)
CLIENT_SINK = one_send(name="client-sink", placement=Placement.CLIENT_SINK)
SERVER_SINK = one_send(name="server-sink", placement=Placement.SERVER_SINK)


@pytest.mark.parametrize("spec", both_families(ROUTER))
def test_in_the_router_every_copy_leaves_the_sender(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (record.observation.client.copies or 0) >= 5, spec.placement.value
    assert _timers(folder) == {Timer.OFF, Timer.RETRANSMIT}


@pytest.mark.parametrize("spec", both_families(OWN_OUTPUT))
def test_in_the_own_output_nothing_leaves_and_nothing_counts_as_resent(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    """The run is INVALID by design: its rule dropped packets that no capture saw. That is the finding."""
    assert invalid_by_design(record), (spec.placement.value, record.reason)
    assert record.observation.client.copies == 0
    assert record.counters["client"].get("TcpRetransSegs", 0) == 0
    assert (record.fault.matched.forward or 0) > 0, "the rule did drop packets"
    assert Timer.PROBE in _timers(folder)


@pytest.mark.parametrize("spec", both_families(CLIENT_SINK))
def test_with_a_sink_of_its_own_the_sender_behaves_as_with_a_router(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    """The prediction is the one for a hole in the router; nobody told the model of the sink."""
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.RETRIES2
    assert record.observation.client.copies == record.counters["client"]["TcpRetransSegs"]
    assert _timers(folder) == {Timer.OFF, Timer.RETRANSMIT}
    assert len(list(read_packets(folder / "sink.pcapng"))) == record.fault.matched.forward, spec.placement.value


@pytest.mark.parametrize("spec", both_families(SERVER_SINK))
def test_with_a_sink_at_the_server_the_client_is_lost_where_it_arrives(spec: RunSpec, record: Record) -> None:
    """A hole around the other end: every copy crosses the router, and none is answered."""
    assert record.outcome is Outcome.CONFIRMED, spec.placement.value
    assert record.observation.client.cause is Cause.RETRIES2
    assert (record.observation.client.copies or 0) >= 5
    assert record.observation.server.never_told


def _timers(folder: Path) -> set[Timer]:
    """What the client's socket was waiting for from the cut on: what the last look before it saw, and all after."""
    entries = read_timeline(folder / "timeline.jsonl").entries
    samples = [(t, one) for t, one in entries if one.kind == "socket-sample" and one.source == "client"]
    at_cut = [one for t, one in samples if t <= 0][-1:]
    return {Timer[one.detail["timer"]] for one in (*at_cut, *(one for t, one in samples if t > 0))}
