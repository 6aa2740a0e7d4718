"""What a line trigger may say, and how it is typed."""

from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.run.trigger import LineTrigger, parse_trigger


@pytest.mark.parametrize(
    ("text", "node", "pattern"),
    [
        ("booked", "client", "booked"),
        ("client:booked", "client", "booked"),
        ("server:accepted [0-9]+", "server", "accepted [0-9]+"),
        ('"event": "mark"', "client", '"event": "mark"'),
        ("router:x", "client", "router:x"),
        ("server:", "server", ""),
    ],
)
def test_a_trigger_is_an_expression_and_may_name_the_end_that_prints(text: str, node: str, pattern: str) -> None:
    assert parse_trigger(text, 0.5) == LineTrigger(node, pattern, 0.5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node": "router"}, "client and server; there is no program 'router'"),
        ({"pattern": "lost ("}, "no regular expression.*as it stands: lost\\\\ \\\\\\("),
        ({"delay_s": -0.1}, "before the line"),
        ({"within_s": 0.0}, "some time to come"),
    ],
)
def test_a_trigger_that_nothing_can_pull_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        LineTrigger(**{"node": "client", "pattern": "x", **changes})
