"""One line that says what a run is doing, on a terminal; a line per step elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.core.timeline import Observation

if TYPE_CHECKING:
    from rich.console import Console

STEPS = {
    "connected": "Connected; letting the programs talk ...",
    "cut": "The flow is dark; watching both kernels and both programs ...",
    "heal": "Healed; watching what comes back ...",
}


@contextmanager
def progress(console: "Console") -> Iterator[Callable[[Observation], None]]:
    """Yields what tells an observation; the line is gone at the end."""
    if not console.is_terminal:
        console.print("Bringing up client, router and server ...")
        yield lambda seen: console.print(STEPS[seen.kind]) if seen.kind in STEPS else None
        return
    with console.status("Bringing up client, router and server ...") as status:

        def tell(seen: Observation) -> None:
            if seen.kind in STEPS:
                status.update(STEPS[seen.kind])

        yield tell
