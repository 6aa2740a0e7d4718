"""What ``lab explain`` says of a capture: as a JSON object, and for people."""

from typing import TYPE_CHECKING, Any

from lab.core.conversation import Conversation
from lab.core.diagnosis import diagnose
from lab.core.explanation import explanation
from lab.core.fault import Cut
from lab.core.segment_class import SegmentClass
from lab.core.silence import Silence
from lab.pcap.flows import Flows

if TYPE_CHECKING:
    from rich.console import RenderableType

_LABEL_WIDTH = 9
_SHOWN_FLOWS = 20
_SHOWN_STEPS = 12
_FEW = 3

_DIRECTIONS = {
    Cut.BOTH: "both directions",
    Cut.FORWARD: "client to server",
    Cut.RETURN: "server to client",
}


def as_object(found: Flows) -> dict[str, Any]:
    """The whole result as JSON values; keys as in the command's contract."""
    capture = found.capture
    return {
        "file": str(capture.path),
        "began_at": capture.first_time_s,
        "frames": capture.frames,
        "segments": capture.decoder.segments,
        "truncated": capture.truncated,
        "notes": notes(found),
        "flows": [explanation(flow, found.origin) for flow in found.conversations],
    }


def notes(found: Flows) -> list[str]:
    """What a reader must know about the capture itself."""
    capture, decoder = found.capture, found.capture.decoder
    said: list[str] = []
    if capture.truncated is not None:
        said.append(f"The capture {capture.truncated}: {capture.frames} frames could be read, the rest is missing.")
    if decoder.fragments:
        said.append(f"{decoder.fragments} IP fragments after the first carry no ports and were left out.")
    if decoder.malformed:
        said.append(f"{decoder.malformed} packets were malformed or captured too short to read.")
    unlisted = sum(flow.unlisted for flow in found.conversations)
    if unlisted:
        said.append(f"{unlisted} copies are counted but not listed one by one: there are too many.")
    if found.not_followed:
        said.append(f"{found.not_followed} segments belong to flows beyond the first {len(found.conversations)}.")
    return said


def as_text(found: Flows) -> "RenderableType":
    """The result for people, at most 80 columns: flows with something to say first, the healthy ones in a line."""
    from rich.console import Group
    from rich.text import Text

    flows = found.conversations
    quiet = [flow for flow in flows if len(flows) > _FEW and _healthy(flow)]
    telling = [flow for flow in flows if flow not in quiet] if quiet else list(flows)
    telling.sort(key=lambda flow: flow.silence is None)
    parts: list[RenderableType] = [
        Text(
            f"{found.capture.path.name}: {found.capture.frames} frames, {found.capture.decoder.segments} TCP segments, "
            f"{len(flows)} flow{'s' * (len(flows) != 1)}, {_seconds(found.until - found.origin)}"
        )
    ]
    parts += [Text(note, style="yellow") for note in notes(found)]
    for flow in telling[:_SHOWN_FLOWS]:
        parts += ["", _flow(flow, found.origin)]
    if len(telling) > _SHOWN_FLOWS:
        parts += ["", Text(f"{len(telling) - _SHOWN_FLOWS} more flows with something to say: see --json.")]
    if quiet:
        segments = sum(side.segments for flow in quiet for side in flow.sides.values())
        parts += ["", Text(f"{len(quiet)} healthy flows, {segments} segments: nothing lost.", style="green")]
    return Group(*parts)


def _healthy(flow: Conversation) -> bool:
    odd = flow.classes.keys() - {SegmentClass.FIRST, SegmentClass.KEEPALIVE_PROBE}
    return flow.silence is None and not odd and not flow.icmp


def _flow(flow: Conversation, origin: float) -> "RenderableType":
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    guess = "  (client assumed)" if flow.assumed else ""
    facts = Table.grid(padding=(0, 1))
    facts.add_column(width=_LABEL_WIDTH, no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(flow, origin):
        facts.add_row(Text(name, style="dim"), Text(value))
    return Group(
        Text(f"{flow.flow}{guess}", style="bold", overflow="fold"),
        *([Padding(facts, (0, 0, 0, 2))] if facts.row_count else []),
        Padding(Text("\n".join(diagnose(flow))), (0, 0, 0, 2)),
    )


def _facts(flow: Conversation, origin: float) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if flow.silence is not None:
        facts.append(("silence", _silence(flow.silence, origin)))
    counts = {
        kind: flow.classes[kind] for kind in SegmentClass if kind is not SegmentClass.FIRST and flow.classes[kind]
    }
    if counts:
        copies = ", ".join(f"{count} {kind.value}" for kind, count in counts.items())
        last = "" if flow.last_copy_at is None else f"; the last at {_seconds(flow.last_copy_at - origin)}"
        facts.append(("copies", copies + last))
    if flow.ladder is not None:
        facts.append(("ladder", _ladder(flow)))
    for name, marks in (("RST", flow.rst), ("FIN", flow.fin)):
        if marks:
            facts.append((name, ", ".join(f"{m.direction.value} at {_seconds(m.time_s - origin)}" for m in marks[:4])))
    return facts


def _silence(silence: Silence, origin: float) -> str:
    healed = "not healed in this capture"
    if silence.healed_at is not None:
        healed = f"healed at {_seconds(silence.healed_at - origin)}"
    doubt = "" if silence.certain else " as far as seen from here"
    return f"since {_seconds(silence.since - origin)}, {_DIRECTIONS[silence.direction]}{doubt}, {healed}"


def _ladder(flow: Conversation) -> str:
    ladder = flow.ladder
    if ladder is None:
        return ""
    steps = " ".join(f"{step_s:.3g}" for step_s in ladder.steps_s[:_SHOWN_STEPS])
    more = " ..." if len(ladder.steps_s) > _SHOWN_STEPS else ""
    cap = "no cap reached" if ladder.cap_s is None else f"cap {_seconds(ladder.cap_s)}"
    return f"{ladder.of.value}: base {_seconds(ladder.base_s)}, {cap}: {steps}{more} s"


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if abs(value) < 1000 else f"{value:.1f} s"
