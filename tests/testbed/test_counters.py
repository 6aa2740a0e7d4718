import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from lab.testbed.counters import delta, read_counters
from tests.testbed.isolated import isolated, until

NSTAT_LEAVES_OUT = {
    "IpForwarding",
    "IpDefaultTTL",
    "TcpRtoAlgorithm",
    "TcpRtoMin",
    "TcpRtoMax",
    "TcpMaxConn",
    "TcpCurrEstab",
}
"""Settings and gauges (``useless_number`` in iproute2's nstat.c)."""


def nstat() -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        # It keeps a history file, by default one that all users named root share.
        shown = subprocess.run(
            ["nstat", "-asz"],
            env=os.environ | {"NSTAT_HISTORY": f"{folder}/history"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return {line.split()[0]: int(line.split()[1]) for line in shown.splitlines() if not line.startswith("#")}


@isolated
def test_names_and_values_are_those_of_nstat() -> None:
    before = read_counters()
    opened = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        listener = socket.create_server((address, 0), family=family)
        client = socket.create_connection(listener.getsockname()[:2])
        client.sendall(b"x" * 1000)
        opened += [listener, client]

    def agrees() -> bool:
        """Whether both read the same; a delayed acknowledgment may come between them."""
        ours = {name: value for name, value in read_counters().items() if name not in NSTAT_LEAVES_OUT}
        return ours == nstat()

    until(agrees)
    grown = delta(before, read_counters())
    assert (grown["TcpActiveOpens"], grown["TcpPassiveOpens"]) == (2, 2)
    assert grown["Ip6InReceives"] > 2
    assert grown["TcpRetransSegs"] == 0


@isolated
def test_each_namespace_has_its_own() -> None:
    client = socket.socket()
    with pytest.raises(ConnectionRefusedError):
        client.connect(("127.0.0.1", 1))
    assert read_counters()["TcpAttemptFails"] == 1
    elsewhere = subprocess.run(
        ["unshare", "--net", "cat", "/proc/thread-self/net/snmp"], capture_output=True, text=True, check=True
    )
    assert "\nTcp: 1 200 120000 -1 0 0 0 " in elsewhere.stdout


def test_a_kernel_without_ipv6_has_no_snmp6(tmp_path: Path) -> None:
    (tmp_path / "snmp").write_text("Tcp: MaxConn RetransSegs\nTcp: -1 3\nIcmpMsg: InType3\nIcmpMsg: 4\n")
    (tmp_path / "netstat").write_text("TcpExt: TCPTimeouts\nTcpExt: 5\n")
    assert read_counters(tmp_path) == {
        "TcpMaxConn": -1,
        "TcpRetransSegs": 3,
        "IcmpMsgInType3": 4,
        "TcpExtTCPTimeouts": 5,
    }


def test_a_counter_that_appears_later_grew_from_zero() -> None:
    assert delta({"TcpInSegs": 5}, {"TcpInSegs": 7, "IcmpMsgInType3": 1}) == {"TcpInSegs": 2, "IcmpMsgInType3": 1}
