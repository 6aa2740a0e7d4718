"""``lab attach``: one established flow of a running container goes dark, and everything is put back."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.cli.narrator import KIND_NAMES

if TYPE_CHECKING:
    from rich.console import Console

    from lab.core.timeline import Observation
    from lab.run.attach import Attached

RESULT = "attach.json"


def attach(
    container: Annotated[str, typer.Option(metavar="NAME", help="A running container, by name or id.")],
    flow: Annotated[
        str | None, typer.Option(help="Where several match: first, newest, a port, or ADDRESS:PORT of one end.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The server's TCP port; any flow where left out.")] = None,
    direction: Annotated[str, typer.Option(help="both, forward (to the server) or return.")] = "both",
    heal_after: Annotated[str | None, typer.Option(metavar="T", help="Heal this long after the cut.")] = None,
    watch_for: Annotated[
        str | None,
        typer.Option("--for", metavar="T", help="How long to watch after the cut; else until the socket is gone."),
    ] = None,
    firewall: Annotated[str, typer.Option(help="auto (nftables where there are), nftables or iptables.")] = "auto",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for captures and result.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Join a running container's network and cut one of its established flows; nothing of it remains afterwards.

    What the container sends on that flow goes into a device that frees it, so that its kernel sees a send that
    succeeded; what comes is dropped when it arrives. Heals after --heal-after, at the end, and on Ctrl-C. Exit code 0:
    done and proved, 3: the hole could not be proved.
    """
    from lab.cli.options import duration, enum_value
    from lab.cli.output import console, print_json, print_out
    from lab.core.fault import Cut
    from lab.run.attach import AttachSpec

    spec = AttachSpec(
        port=port,
        flow=flow,
        direction=enum_value("--direction", Cut, direction),
        heal_after_s=None if heal_after is None else duration("--heal-after", heal_after),
        watch_s=None if watch_for is None else duration("--for", watch_for),
    )
    console.print(f"Joining the network of {container} ...")
    result, folder, restored_by_other = _perform(spec, container, firewall, out, console)
    summary = _summary(result, container, folder, restored_by_other=restored_by_other)
    _write(folder / RESULT, summary)
    if json:
        print_json(summary)
    else:
        print_out(_headline(result), style="bold")
        for check in result.checks:
            if not check.ok:
                print_out(f"not proved: {check.name}: {check.detail}")
        if result.proved:
            print_out(f"Proved: all {len(result.checks)} checks hold.")
        print_out(f"{container} is as it was. Everything is in {folder}/")
    if result.ended == "interrupted":
        raise KeyboardInterrupt
    if not result.proved:
        raise SystemExit(3)


def _perform(spec: Any, container: str, firewall: str, out: Path | None, console: "Console") -> tuple[Any, Path, bool]:
    from datetime import UTC, datetime

    from lab.report.folder import RunFolder
    from lab.run.attach import attach as perform
    from lab.run.patience import Patience, Stopped
    from lab.testbed.docker.sidecar.attach import Attachment

    made: list[Path] = []

    def open_folder() -> Path:
        made.append(RunFolder.create("attach", started=datetime.now(UTC).astimezone(), out=out).path)
        return made[0]

    narrator = _Narrator(console)
    try:
        with contextlib.ExitStack() as stack:
            with _interrupt_told(console, f"Interrupted: leaving the network of {container} ..."):
                attachment = stack.enter_context(Attachment(container, firewall))
            stop = stack.enter_context(_interrupt_as_word())
            result = perform(attachment, spec, open_folder, Patience(stop), narrator.tell)
    except (KeyboardInterrupt, Stopped) as stopped:
        if not narrator.has_cut:
            console.print("Nothing was cut.")
        raise KeyboardInterrupt from stopped
    return result, made[0], attachment.restored_by_other


@contextlib.contextmanager
def _interrupt_told(console: "Console", text: str) -> Iterator[None]:
    """Ctrl-C says something at once: what was begun takes a while to be undone."""
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        console.print(text)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _interrupt_as_word() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C sets; a second Ctrl-C interrupts as ever.

    Raised in the middle of a call, it could take an answer of the agent's with it, and the heal would wait in vain.
    """
    stop = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class _Narrator:
    """Tells what happens, in seconds from the cut."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._cut_at = 0.0
        self.has_cut = False

    def tell(self, seen: "Observation") -> None:
        """Tell one observation."""
        match seen.kind:
            case "cut":
                self._cut_at, self.has_cut = seen.at, True
                self._say(seen, f"CUT. {seen.detail['flow']} goes dark; Ctrl-C heals.", style="bold")
            case "copy":
                kind = KIND_NAMES.get(seen.detail["class"] or "", "")
                self._say(seen, f"copy {seen.detail['copies']:<2}  {kind}".rstrip())
            case "closed":
                self._say(seen, "the container's program closed the socket; its kernel goes on", style="bold")
            case "gone":
                self._say(seen, "the container's socket is gone", style="bold")
            case "heal":
                self._say(seen, "HEALED. Packets pass again.", style="bold")

    def _say(self, seen: "Observation", text: str, style: str | None = None) -> None:
        self._console.print(f"{seen.at - self._cut_at:7.2f} s  {text}", style=style)


def _headline(result: "Attached") -> str:
    copies = len(result.traffic.copies)
    if result.track.gone_at is not None:
        end = f"gone {result.track.gone_at - result.cut.done_at:.3f} s after the cut"
    elif result.traffic.recovered_at is not None:
        end = f"recovered {result.traffic.recovered_at - result.cut.done_at:.3f} s after the cut"
    else:
        end = "still there at the end of the watch"
    closed = result.closed_at
    program = "" if closed is None else f"its program closed it {closed - result.cut.done_at:.3f} s after the cut, "
    return f"{result.fault.flow}: {copies} copies into the hole, {program}the socket {end}."


def _summary(result: "Attached", container: str, folder: Path, *, restored_by_other: bool) -> dict[str, Any]:
    """The result as one JSON object; seconds from the cut, null for what did not happen."""
    cut_at = result.cut.done_at

    def since(at: float | None) -> float | None:
        return None if at is None else at - cut_at

    copies = result.traffic.copies
    placement = result.fault.placement.value
    return {
        "schema": 1,
        "container": container,
        "flow": {"client": str(result.fault.flow.client), "server": str(result.fault.flow.server)},
        "end": placement.removesuffix("-sink"),
        "direction": result.fault.direction.value,
        "placement": placement,
        "interface": result.interface,
        "firewall": result.firewall,
        "cut_at": cut_at + result.capture.clocks[0].offset,
        "healed_s": since(result.healed.began_at),
        "watched_s": since(result.watched_until),
        "ended": result.ended,
        "matched": {"forward": result.matched.forward, "return": result.matched.return_},
        "first_lost_s": since(result.traffic.lost_at),
        "copies": len(copies),
        "copy_times_s": [since(copy.segment.time_s) for copy in copies],
        "copy_classes": [copy.segment_class.value for copy in copies],
        "closed_s": since(result.closed_at),
        "gone_s": since(result.track.gone_at),
        "recovered_s": since(result.traffic.recovered_at),
        "timers": sorted({sample.timer.name.lower() for sample in result.track.samples if sample.at >= cut_at}),
        "proved": result.proved,
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in result.checks],
        "restored_by": "another container" if restored_by_other else "itself",
        "artefacts": sorted({RESULT, *(path.name for path in folder.iterdir())}),
    }


def _write(path: Path, summary: dict[str, Any]) -> None:
    import json

    from lab.report.folder import write_whole

    write_whole(path, (json.dumps(summary, indent=2) + "\n").encode())
