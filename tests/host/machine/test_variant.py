"""Variants are named by their defects."""

from lab.host.machine.variant import RELEASED, REPAIRED, VARIANTS, defects


def test_the_repaired_one_has_no_defect_and_each_other_one_but_the_released_has_one() -> None:
    assert defects(REPAIRED) == ()
    assert all(len(defects(each)) == 1 for each in VARIANTS.values() if each not in {REPAIRED, RELEASED})


def test_every_repair_can_be_left_out_alone() -> None:
    alone = {defects(each)[0] for each in VARIANTS.values() if len(defects(each)) == 1}

    assert len(alone) == 7
    assert set(defects(RELEASED)) == alone - {"counts_undeliverable"}


def test_tables_print_the_released_one_by_its_version() -> None:
    """Sessions are released in the same output."""
    assert [each.label for each in VARIANTS.values() if each.label] == ["livekit-agents 1.8.9"]
