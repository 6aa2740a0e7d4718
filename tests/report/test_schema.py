import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab.report.schema import record_schema
from tests.report.cases import CASES

PUBLISHED = Path(__file__).parents[2] / "docs" / "record.schema.json"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_the_models() -> None:
    assert PUBLISHED.read_text() == record_schema(), "run: python -m lab.report.schema > docs/record.schema.json"


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_record_fulfils_the_schema(case: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(json.loads(CASES[case]()[0].to_json()))


def test_a_record_with_more_keys_fulfils_the_schema(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate({"schema": 1, "outcome": "invalid", "backend": "netns", "colour": "blue"})


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 2},
        {"schema": None},
        {"outcome": "passed"},
        {"backend": None},
        {"horizon_s": "20"},
        {"checks": [{"name": "bystander"}]},
        {"prediction": {"client": {"sending": {"cause": "retries2", "window_s": [1.0, 2.0, 3.0]}}}},
        {"prediction": {"client": {"sending": {"cause": "boredom"}}}},
    ],
)
def test_what_is_no_record_fails_the_schema(
    changes: dict[str, Any], validator: jsonschema.Draft202012Validator
) -> None:
    minimal = {"schema": 1, "outcome": "invalid", "backend": "netns"}
    assert validator.is_valid(minimal)
    assert not validator.is_valid({**minimal, **changes})


@pytest.mark.parametrize("key", ["schema", "outcome", "backend"])
def test_three_keys_are_never_absent(key: str, validator: jsonschema.Draft202012Validator) -> None:
    minimal = {"schema": 1, "outcome": "invalid", "backend": "netns"}
    del minimal[key]
    assert not validator.is_valid(minimal)
