"""What is particular to the legacy tables; that rules work at all is in test_firewall.py."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lab.testbed.firewall_iptables as tables
from lab.core.errors import LabError
from lab.core.fault import Fault
from lab.core.flow import Endpoint, FourTuple
from lab.testbed.firewall_iptables import IptablesRules
from tests.testbed.places import Places, three_places

FAULT = Fault(FourTuple(Endpoint("192.0.2.2", 4000), Endpoint("198.51.100.2", 80)))


@pytest.fixture
def places() -> Iterator[Places]:
    with three_places() as places:
        yield places


@pytest.mark.skipif(os.geteuid() != 0, reason="/proc/net/ip_tables_names belongs to root, in any namespace")
def test_only_the_mangle_tables_come_into_being(places: Places) -> None:
    assert places.router.call(_tables_after_a_cut) == {"mangle"}


def test_a_change_by_another_process_between_reading_and_commit_is_kept(places: Places) -> None:
    assert places.router.call(_commit_after_somebody_else) == ["lab-fault-0-forward", "others"]


def test_a_commit_that_never_succeeds_is_an_error_with_the_kernels_reason(places: Places) -> None:
    with pytest.raises(
        LabError, match=r"The kernel refused the rules: can't commit: Resource temporarily unavailable\."
    ):
        places.router.call(_commit_while_somebody_keeps_changing)


def test_a_jump_that_somebody_removed_is_an_error_when_it_is_to_be_healed(places: Places) -> None:
    with pytest.raises(LabError, match="The kernel refused the rules"):
        places.router.call(_heal_after_a_flush)


def test_building_rules_leaves_standard_output_alone(places: Places) -> None:
    """The library's own check of a rule swaps it for a pipe."""
    assert places.router.call(_descriptor_swaps_while_building) == 0


def _tables_after_a_cut() -> set[str]:
    rules = IptablesRules()
    rules.build(0, FAULT)
    rules.enforce(0, FAULT)
    return set(Path("/proc/self/net/ip_tables_names").read_text().split())


class _Others:
    """Another process, played by a second handle: adds a chain of its own."""

    def __init__(self) -> None:
        self._number = 0

    def change(self, name: str) -> None:
        table = tables._Table()
        table.create_chain(name)
        table.commit()
        table.close()


def _interfere(rules: IptablesRules, times: int) -> None:
    """Let somebody else change the table just before each of the next commits."""
    table: Any = rules._families[0]._table
    commit, left, others = table.commit, list(range(times)), _Others()

    def late() -> None:
        if left:
            number = left.pop()
            others.change(f"others{number or ''}")
        commit()

    table.commit = late


def _commit_after_somebody_else() -> list[str]:
    rules = IptablesRules()
    rules.build(0, FAULT)
    _interfere(rules, times=1)
    rules.enforce(0, FAULT)
    table = tables._Table()
    chains = sorted(chain.name for chain in table.chains)
    assert table.get_target(table.first_rule("FORWARD")) == b"lab-fault-0-forward"
    return [name for name in chains if name.startswith(("lab-fault", "others"))]


def _commit_while_somebody_keeps_changing() -> None:
    rules = IptablesRules()
    rules.build(0, FAULT)
    _interfere(rules, times=100)
    rules.enforce(0, FAULT)


def _heal_after_a_flush() -> None:
    rules = IptablesRules()
    rules.build(0, FAULT)
    rules.enforce(0, FAULT)
    table = tables._Table()
    table.flush_entries("FORWARD")
    table.commit()
    rules.release(0, FAULT)


def _descriptor_swaps_while_building() -> int:
    import os

    swaps, dup2 = [], os.dup2

    def counting(*arguments: Any) -> int:
        swaps.append(arguments)
        return dup2(*arguments)

    os.dup2 = counting  # type: ignore[assignment]
    try:
        IptablesRules().build(0, FAULT)
    finally:
        os.dup2 = dup2
    return len(swaps)
