"""The JSON Schema of record.json, as published in docs/record.schema.json.

``python -m lab.report.schema`` prints it.
"""

import json

from lab.report.record import Record

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def record_schema() -> str:
    """The schema as indented JSON with a newline at its end."""
    generated = Record.model_json_schema(by_alias=True, mode="validation")
    # The number has a default for whoever makes a record, but a record without it is none.
    required = ["schema", *(key for key in generated.pop("required", []) if key != "schema")]
    schema = {"$schema": _DIALECT, "required": required, **generated}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(record_schema())
