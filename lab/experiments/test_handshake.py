"""Question: how long does a connection attempt into a hole last, on both sides?

Topology::

    client --SYN--x   router          server        both directions dark before the first SYN
    client --SYN----> router --SYN--> server
                             x-SYN/ACK--            return dark, and the client gone

Prediction: SYN_SENT ends at the earlier of a count (``tcp_syn_retries`` + ``tcp_syn_linear_timeouts``) and a duration
with base 1 s from the first SYN; the user timeout acts there too. SYN_RECEIVED ends by count
(``tcp_synack_retries``). The retransmissions are the kernel's TcpRetransSegs.

Look at: ``observation.client.copy_times_s``; ``right.pcapng`` for the SYN/ACKs.
"""

import signal

import pytest

from lab.core.fault import Cut
from lab.core.prediction import State
from lab.core.socket import SocketOptions
from lab.experiments.common import CLIENT_PORT, LINUX, both_families, client, each, one_send, sysctls
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import Action, RunSpec

FROM_HERE = ("--bind-port", str(CLIENT_PORT), "--connect-only")


def syn(retries: int, linear: int, user_timeout_s: float | None = None, **settings: object) -> RunSpec:
    """A connection attempt into a hole."""
    options = () if user_timeout_s is None else ("--user-timeout", str(user_timeout_s))
    return one_send(
        profile=LINUX,
        client=client(*FROM_HERE, *options),
        actions=(),
        connect_from=CLIENT_PORT,
        client_state=State.SYN_SENT,
        declared_options=SocketOptions(user_timeout_s=user_timeout_s),
        sysctls=sysctls({"syn_retries": retries, "syn_linear_timeouts": linear, **settings}),
    )


def synack(retries: int) -> RunSpec:
    """A listener whose SYN/ACK is lost, and whose client has gone since."""
    return one_send(
        profile=LINUX,
        client=client(*FROM_HERE),
        actions=(Action(0.5, "client", signal=signal.SIGKILL),),
        connect_from=CLIENT_PORT,
        direction=Cut.RETURN,
        client_state=State.SYN_SENT,
        server_state=State.SYN_RECEIVED,
        sysctls=sysctls(server={"synack_retries": retries}),
    )


SYN = {
    "retries1-linear4": syn(1, 4),
    "retries2-linear4": syn(2, 4),
    "retries1-linear0": syn(1, 0),
    "retries2-linear0": syn(2, 0),
    "retries3-linear1": syn(3, 1),
    "rto-max-1s": syn(6, 4, rto_max_ms=1000),
    "user-timeout": syn(6, 4, 3.0),
}
SYNACK = {f"retries{n}": synack(n) for n in (4, 0, 1, 2, 3)}


@pytest.mark.parametrize("spec", [*each(SYN), *both_families(SYN["retries2-linear4"], "retries2-linear4")[1:]])
def test_syn_unanswered(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.errno == "ETIMEDOUT", spec.name
    assert set(end.copy_classes) == {"syn-copy"}
    assert record.counters["client"]["TcpRetransSegs"] == end.copies


@pytest.mark.parametrize("spec", [*each(SYNACK), *both_families(SYNACK["retries1"], "retries1")[1:]])
def test_synack_unanswered(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.server
    assert end.cause is Cause.SYNACK_RETRIES, spec.name
    assert end.copies == int(record.settings.server["net.ipv4.tcp_synack_retries"])
    assert record.counters["server"].get("TcpRetransSegs", 0) == end.copies
