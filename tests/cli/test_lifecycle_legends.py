"""What stands above the tables: every column is explained, with the numbers of the tables themselves."""

import re

from lab.cli.lifecycle_tables import AXIS
from lab.host.tables.stage import REQUEST_S
from lab.live.lifecycle.endpoints import ENDPOINTS
from tests.cli.scenes import EVERY_HOST, TABLES, text


def test_each_table_stands_below_what_it_asks_and_each_of_its_columns_is_explained() -> None:
    out = text(TABLES, EVERY_HOST, 2000)
    blocks = [block.splitlines() for block in out.split("\n\n")]
    tables = [block for block in blocks if any(line.startswith("──") for line in block)]
    said = {"variant", "path", "case", "is_closed", "how, with which codes", AXIS, "server"}
    missing = []
    for title, *legend in (
        block[: next(i for i, line in enumerate(block) if line.startswith("──"))] for block in tables
    ):
        above, headings = " ".join([*legend[:-1], *out.split("\n\n")]), legend[-1].strip()
        assert len(legend) > 1, title
        missing += [
            (title, heading)
            for heading in re.split(r"\s{2,}", headings.replace(AXIS, ""))
            if heading not in said and not re.search(rf"\b{heading}[:,]", above)
        ]

    assert len(tables) == 11
    assert missing == []


def test_what_decides_how_to_read_the_tables_is_said() -> None:
    out = " ".join(text(TABLES, EVERY_HOST, 80).split())

    assert "logarithmic axis" in out
    assert "100 times faster, as a time lapse" in out
    assert "repair does not claim to mend this race" in out
    assert "livekit-agents 1.8.9" in out


def test_the_numbers_of_the_legends_are_those_of_the_tables() -> None:
    out = " ".join(text(TABLES, EVERY_HOST, 80).split())
    paths, servers = ({getattr(row, key) for row in TABLES.leaks} for key in ("path", "profile"))

    assert f"by {len(paths)} paths at {len(servers)} servers" in out
    assert f"A request waits {REQUEST_S:g} s here" in out
    assert f"limit of silence, {ENDPOINTS['developer-older'].server.silence_close_s:g} s" in out
