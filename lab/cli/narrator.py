"""Tells a run line by line while it happens: what was predicted beside what is seen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.core.timeline import Observation

if TYPE_CHECKING:
    from rich.console import Console

    from lab.run.watch import EndWatch

KIND_NAMES = {
    "tail-loss-probe": "tail-loss probe",
    "timeout-copy": "timeout copy",
    "keepalive-probe": "keepalive probe",
    "window-probe": "window probe",
    "syn-copy": "SYN again",
    "fin-copy": "FIN again",
}


_DOES = {"close": "closes its socket", "exit": "exits"}
"""Signs of which only the program knows whether they come of the loss."""

_PLACES = {"netns": "namespaces of their own", "docker": "containers"}


@contextmanager
def narrate(console: "Console", backend: str) -> Iterator[Callable[[Observation], None]]:
    """Yields what tells an observation.

    Args:
        console: Where to.
        backend: netns or docker.
    """
    console.print(f"Bringing up client, router and server in {_PLACES[backend]} ...")
    yield Narrator(console).tell


class Narrator:
    """Keeps what has been told already.

    Args:
        console: Where to.
    """

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._cut_at: float | None = None
        self._copies = {"client": 0, "server": 0}
        self._gone: set[str] = set()

    def tell(self, seen: Observation) -> None:
        """Tell one observation, or nothing."""
        match seen.kind:
            case "connected":
                self._say(None, f"connected: {seen.detail['flow']}")
                self._say(None, "both programs talk; a bystander flow runs beside them")
            case "cut":
                self._cut_at = seen.at
                self._say(seen.at, "CUT. Packets of this one flow vanish, in both directions.", style="bold")
                self._say(None, "Nothing was closed: both ends believe that they are connected.")
            case "heal":
                self._say(seen.at, "HEALED. Packets pass again.", style="bold")
            case "action" if seen.detail.get("text") == "send":
                self._say(seen.at, f"{seen.source:<6}  sends a line into the hole")
            case "reconnect":
                self._say(seen.at, "client  tries a new connection on the same path")
            case "noticed":
                error = f": {seen.detail['errno']}" if seen.detail.get("errno") else ""
                by = str(seen.detail.get("by"))
                self._say(seen.at, f"{seen.source:<6}  program {_DOES.get(by, 'is told')}{error}")
            case "reconnected":
                passed = "passed: only the old one is dark" if seen.detail["connected"] else "was lost too"
                self._say(None, f"The new connection {passed}.")
            case "bystander":
                state = "never noticed" if seen.detail["alive"] and not seen.detail["lost"] else "was disturbed"
                self._say(None, f"The bystander flow {state}.")
            case "look":
                for end in seen.detail["ends"]:
                    self._look(end)

    def _look(self, end: "EndWatch") -> None:
        if end.seen is None or self._cut_at is None or end.sent_at is None:
            return
        told = self._copies[end.name]
        times = end.copies_seen(self._cut_at)
        for number, at in enumerate(times[told:], start=told):
            self._say(at, f"{end.name:<6}  {self._copy(end, number)}")
        self._copies[end.name] = len(times)
        if end.gone and end.name not in self._gone:
            self._gone.add(end.name)
            due = end.forecast.due(end.sent_at)
            beside = "" if due is None else f"   predicted {self._since(due[0]):.2f} to {self._since(due[1]):.2f}"
            ended = "orphan is gone" if end.let_go else f"kernel gives up{beside}"
            self._say(end.seen.gone_at, f"{end.name:<6}  {ended}", style="bold")

    def _copy(self, end: "EndWatch", number: int) -> str:
        copies = end.forecast.sending.copy_times
        if number >= len(copies):
            return f"copy {number + 1:<2}  not predicted"
        copy = copies[number]
        low, high = (self._since((end.sent_at or 0.0) + edge) for edge in copy.window_s)
        kind = KIND_NAMES.get(copy.kind.value, copy.kind.value)
        return f"copy {number + 1:<2}  {kind:<16}   predicted {low:.2f} to {high:.2f}"

    def _since(self, at: float) -> float:
        return at - (self._cut_at or at)

    def _say(self, at: float | None, text: str, style: str | None = None) -> None:
        when = " " * 8 if at is None or self._cut_at is None else f"{self._since(at):6.2f} s"
        self._console.print(f"{when}  {text}", style=style)
