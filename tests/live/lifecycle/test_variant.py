from dataclasses import fields

from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, VARIANTS


def test_the_published_repair_mends_the_release_and_nothing_else() -> None:
    differ = {
        field.name for field in fields(PUBLISHED) if getattr(PUBLISHED, field.name) != getattr(REPAIRED, field.name)
    }

    assert differ == {"name", "description", "closes_on_release"}


def test_the_labs_has_none_of_the_defects() -> None:
    defects = [field.name for field in fields(LAB) if field.type == "bool" or field.type is bool]

    assert len(defects) == 6
    assert all(getattr(LAB, name) and not getattr(PUBLISHED, name) for name in defects)


def test_each_is_found_by_its_name() -> None:
    assert list(VARIANTS.values()) == [PUBLISHED, REPAIRED, LAB]
