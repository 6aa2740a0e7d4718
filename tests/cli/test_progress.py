"""What a run says of itself while it goes on, on a terminal and elsewhere."""

import io

from rich.console import Console

from lab.cli.progress import progress
from lab.core.timeline import Observation


def told(*kinds: str, terminal: bool) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=80, color_system=None)
    with progress(console) as tell:
        for kind in kinds:
            tell(Observation(1.0, "router", kind))
    return output.getvalue()


def test_elsewhere_each_step_is_a_line() -> None:
    assert told("connected", "look", "cut", terminal=False).splitlines() == [
        "Bringing up client, router and server ...",
        "Connected; letting the programs talk ...",
        "The flow is dark. Watching (--for limits it) ...",
    ]


def test_on_a_terminal_one_line_is_drawn_anew_and_gone_at_the_end() -> None:
    shown = told("connected", "look", "heal", terminal=True)

    assert "Healed; watching what comes back" in shown
    assert shown.endswith("\r\x1b[1A\x1b[2K"), "up one line, and that line erased"
