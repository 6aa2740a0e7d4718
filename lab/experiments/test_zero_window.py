"""Question: how long does a sender wait for a peer that has closed its window?

Topology: client, router, server in a row; the server does not read, the client has more to send than fits.

Prediction: for ever, as long as the peer answers the probes: that is no loss. Once the path goes dark, by count:
``tcp_retries2`` unanswered probes, not by the duration that data in flight gets (``tcp_probe_timer``).

Look at: ``observation.client.copy_classes``: window probes only.
"""

import time

import pytest

from lab.core.prediction import State
from lab.core.socket import TcpState, Timer
from lab.experiments.common import CLIENT, PORT, SERVER, client, each, one_send, server, sysctls
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec
from lab.testbed.netns import open_testbed
from lab.testbed.ports import TestbedSpec


def stuffed(**changes: object) -> RunSpec:
    """A client whose data the server's closed window holds back."""
    fields: dict[str, object] = {
        "server": server("--no-read"),
        "client": client("--fill", "200000"),
        "actions": (),
        "client_state": State.ZERO_WINDOW,
        "talks": False,
        **changes,
    }
    return one_send(**fields)


DARK = {f"probes-{n}": stuffed(sysctls=sysctls({"retries2": n})) for n in (3, 4, 5, 6, 8)}
DARK |= {"probes-4-ipv6": stuffed(sysctls=sysctls({"retries2": 4}), ipv6=True)}


@pytest.mark.parametrize("spec", each(DARK))
def test_in_the_dark_the_probes_are_counted(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause is Cause.PROBES, spec.name
    assert set(end.copy_classes) == {"window-probe"}
    assert end.copies == int(record.settings.client["net.ipv4.tcp_retries2"])


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_a_live_peer_keeps_it_for_ever(ipv6: bool) -> None:
    """The control without loss: more probes than ``tcp_retries2`` would allow, all answered, and nobody gives up."""
    with open_testbed(TestbedSpec(ipv6=ipv6)) as testbed:
        testbed.client.write_sysctl("net.ipv4.tcp_retries2", "3")
        testbed.client.write_sysctl("net.ipv4.tcp_rto_max_ms", "1000")
        testbed.server.spawn_module(SERVER, (str(PORT), "--no-read")).wait_for_line("listening", 10)
        program = testbed.client.spawn_module(CLIENT, ("server", str(PORT), "--fill", "200000"))
        program.wait_for_line("blocked", 10)
        deadline = time.monotonic() + 20
        while testbed.client.counters().get("TcpExtTCPWinProbe", 0) < 8:
            assert time.monotonic() < deadline, "eight window probes take some five seconds"
            time.sleep(0.1)  # between two looks at the counter
        (socket,) = [s for s in testbed.client.sockets() if s.remote.port == PORT]
        assert socket.state is TcpState.ESTABLISHED
        assert socket.timer is Timer.PROBE
        assert program.returncode is None
