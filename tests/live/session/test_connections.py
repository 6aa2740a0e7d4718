"""A connection is fresh until its setup was decided."""

import pytest

from lab.live.session.connections import Connection
from lab.live.session.limit import Refusal


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        (Connection(1, 0.0), True),
        (Connection(1, 0.0, session="s"), False),
        (Connection(1, 0.0, refusal=Refusal.HELD), False),
        (Connection(1, 0.0, closed=True), False),
    ],
)
def test_fresh_is_who_has_said_nothing_yet(connection: Connection, expected: bool) -> None:
    assert connection.fresh is expected
