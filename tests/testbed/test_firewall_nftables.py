"""What is particular to nftables; that rules work at all is in test_firewall.py."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, LabError, Unsupported
from lab.core.fault import Fault, Placement
from lab.core.flow import Endpoint, FourTuple
from lab.testbed.firewall_nftables import NftablesRules
from tests.testbed.places import Places, three_places

FAULT = Fault(FourTuple(Endpoint("192.0.2.2", 4000), Endpoint("198.51.100.2", 80)))
OWN_OUTPUT = Fault(FAULT.flow, placement=Placement.OWN_OUTPUT)


@pytest.fixture
def places() -> Iterator[Places]:
    with three_places() as places:
        yield places


def test_the_rules_are_in_a_table_of_the_labs_own_before_mangle(places: Places) -> None:
    chains = places.router.call(_base_chains)
    assert chains == {"forward": -160, "output": -160}


def test_close_leaves_no_table(places: Places) -> None:
    assert places.router.call(_tables_after_close) == []


def test_a_table_that_somebody_removed_is_an_error_when_the_fault_is_to_be_healed(places: Places) -> None:
    with pytest.raises(LabError, match="No such file or directory"):
        places.router.call(_heal_without_a_table)


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(EnvironmentNotReady, match=r"libnftables is missing.*Fix: apt-get install nftables"):
        NftablesRules()


def test_a_kernel_without_netfilter_netlink_is_found_out_gently(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would end the process."""

    def refuse(*_: Any) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr("socket.socket", refuse)
    with pytest.raises(Unsupported, match="no netfilter netlink: Protocol not supported"):
        NftablesRules()


def _list(*what: str) -> list[dict[str, Any]]:
    told = subprocess.run(["nft", "-j", "list", *what], check=True, capture_output=True, text=True).stdout
    objects: list[dict[str, Any]] = json.loads(told)["nftables"]
    return objects


def _base_chains() -> dict[str, int]:
    rules = NftablesRules()
    for number, fault in enumerate((FAULT, OWN_OUTPUT)):
        rules.build(number, fault)
        rules.enforce(number, fault)
    objects = _list("table", "inet", "blackhole-lab")
    return {thing["chain"]["hook"]: thing["chain"]["prio"] for thing in objects if "hook" in thing.get("chain", {})}


def _tables_after_close() -> list[dict[str, Any]]:
    rules = NftablesRules()
    rules.build(0, FAULT)
    rules.enforce(0, FAULT)
    rules.close()
    rules.close()
    return [thing for thing in _list("tables") if "table" in thing]


def _heal_without_a_table() -> None:
    rules = NftablesRules()
    rules.build(0, FAULT)
    rules.enforce(0, FAULT)
    subprocess.run(["nft", "delete", "table", "inet", "blackhole-lab"], check=True)
    rules.release(0, FAULT)
