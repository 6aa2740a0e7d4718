"""One line that says what a run is doing, on a terminal; a line per step elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.core.duration import format_duration
from lab.core.timeline import Observation

if TYPE_CHECKING:
    from rich.console import Console

STEPS = {
    "connected": "Connected; letting the programs talk ...",
    "heal": "Healed; watching what comes back ...",
}


class Steps:
    """The line for each observation that begins a step; the forecast is told with the cut, since it says how long."""

    def __init__(self) -> None:
        self._forecast: list[str] = []

    def line(self, seen: Observation) -> str | None:
        """What to say, or None where the observation begins nothing."""
        if seen.kind == "prediction":
            window = seen.detail["window_s"]
            if seen.detail["branch"] == "sending" and window is not None:
                self._forecast.append(f"the {seen.source}'s kernel after {format_duration(window[1])}")
            return None
        if seen.kind == "cut":
            due = f" An end that sends gives up: {', '.join(self._forecast)}." if self._forecast else ""
            return f"The flow is dark.{due} Watching (--for limits it) ..."
        return STEPS.get(seen.kind)


@contextmanager
def progress(console: "Console") -> Iterator[Callable[[Observation], None]]:
    """Yields what tells an observation; the line is gone at the end."""
    if not console.is_terminal:
        console.print("Bringing up client, router and server ...")
        steps = Steps()

        def say(seen: Observation) -> None:
            if (line := steps.line(seen)) is not None:
                console.print(line)

        yield say
        return
    with console.status("Bringing up client, router and server ...") as status:
        steps = Steps()

        def tell(seen: Observation) -> None:
            if (line := steps.line(seen)) is not None:
                status.update(line)

        yield tell
