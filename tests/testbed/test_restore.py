"""What a killed owner left in a namespace is taken back, whatever rules it used, and nothing else is touched."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab.testbed.firewall_iptables
import lab.testbed.firewall_nftables  # noqa: F401 - loaded before the places are forked
from lab.core.fault import Fault, Placement
from lab.testbed.firewall import open_firewall
from lab.testbed.restore import restore
from lab.testbed.sink import Sink
from tests.testbed.places import Places, receive, send, three_places


@pytest.fixture
def places() -> Iterator[Places]:
    with three_places() as places:
        yield places


@pytest.mark.parametrize("firewall", ["iptables", "nftables"])
def test_a_cut_that_outlived_its_owner_is_undone(places: Places, firewall: str) -> None:
    flow = places.connect()
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut_in_a_process_that_is_killed, firewall, fault)
    places.client.call(send, flow, b"lost")
    places.server.call(send, flow, b"lost")

    removed = places.client.call(restore)

    assert [one for one in removed if one.startswith(("table", "chain"))]
    assert "device lab-sink" in removed
    assert places.server.call(receive, flow, 4) == b"lost"
    assert places.client.call(receive, flow, 4) == b"lost"
    assert places.client.call(restore) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="/proc/net/ip_tables_names belongs to root, in any namespace")
def test_a_namespace_without_anything_of_the_labs_gets_nothing(places: Places) -> None:
    assert places.client.call(restore) == []
    assert "mangle" not in places.client.call(_legacy_tables)
    assert "blackhole" not in places.client.call(_ruleset)


def test_rules_of_others_stay(places: Places) -> None:
    places.client.call(_add_foreign_rules)
    before = places.client.call(_ruleset)
    flow = places.connect()
    places.client.call(_cut_in_a_process_that_is_killed, "nftables", Fault(flow, placement=Placement.CLIENT_SINK))
    places.client.call(restore)
    assert places.client.call(_ruleset) == before


def _cut_in_a_process_that_is_killed(firewall: str, fault: Fault) -> None:
    child = os.fork()
    if child == 0:
        try:
            Sink()
            open_firewall(firewall).cut(fault)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def _legacy_tables() -> str:
    return Path("/proc/self/net/ip_tables_names").read_text()


def _ruleset() -> str:
    return subprocess.run(["nft", "list", "ruleset"], check=True, capture_output=True, text=True).stdout


def _add_foreign_rules() -> None:
    rules = "add table inet other\nadd chain inet other in { type filter hook input priority 0; }\n"
    subprocess.run(["nft", "-f", "-"], input=f"{rules}add rule inet other in accept\n", text=True, check=True)
