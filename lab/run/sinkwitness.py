"""What proves a hole at one end alone: its sink's capture, that of its interface, and the rules' counts."""

from collections.abc import Iterator, Mapping

from lab.core.errors import InvalidRun
from lab.core.fault import Fault, Matched
from lab.core.flow import Direction
from lab.core.icmp import IcmpMessage
from lab.core.retransmission import classify
from lab.core.segment import Segment
from lab.core.verdict import Check
from lab.run.proofs import CLOCK_STEP_S
from lab.run.sides import Side, kernel_segments, seen_from_sink
from lab.run.traffic import Traffic, read_traffic
from lab.testbed.ports import CaptureSummary, CutReceipt

ON_THE_WAY_S = 0.001
"""From a capture to the hook behind it: who was seen this long before a commit may have been dropped by it or not."""


class SinkWitness:
    """Both captures of an attachment, against its rules."""

    def __init__(self, fault: Fault, cut: CutReceipt, healed: CutReceipt, sides: Mapping[str, Side]) -> None:
        sunk = fault.placement.sunk
        if sunk is None:
            raise InvalidRun("A fault with a sink was expected.")
        self._fault, self._cut, self._healed = fault, cut, healed
        self._out, self._in = sunk, sunk.opposite
        self._interface, self._sink = sides["interface"], sides["sink"]

    def traffic(self, until: float, healed: CutReceipt | None) -> Traffic:
        """What the container's end sent and received."""
        lost = self._between(self._in, self._cut.began_at, self._healed.began_at) if self._is_cut(self._in) else []
        seen = seen_from_sink(self._interface, self._sink, lost)
        classes = classify(kernel_segments(seen), self._fault.flow)
        return read_traffic(classes, self._out, self._cut.began_at, None if healed is None else healed.began_at, until)

    def checks(self, matched: Matched, summary: CaptureSummary) -> Iterator[Check]:
        """Every proof, passed or failed."""
        dropped = sum(summary.dropped.values())
        yield Check("capture-complete", dropped == 0, f"{sum(summary.packets.values())} packets, {dropped} dropped")
        if self._is_cut(self._out):
            count, sunk = matched.of(self._out), len(self._sink.segments)
            yield Check(
                f"rule-equals-capture-{self._out.value}",
                count == sunk,
                f"the rule led {count} away, {sunk} fell into the sink",
            )
            left = len(self._between(self._out, self._cut.done_at, self._healed.began_at))
            yield Check("nothing-left", left == 0, f"{left} segments of the flow left by the container's interface")
        if self._is_cut(self._in):
            yield self._drops_agree(matched.of(self._in))
        total = matched.forward + matched.return_
        yield Check("rules-matched", total > 0, f"the rules had {total} packets (at least 1)")
        icmp = sum(1 for message in self._interface.icmp if self._is_complaint(message))
        yield Check("no-icmp", icmp == 0, f"{icmp} ICMP errors about the flow while it was dark")
        offsets = [pair.offset for pair in summary.clocks]
        moved_s = max(offsets) - min(offsets)
        yield Check("clocks-steady", moved_s <= CLOCK_STEP_S, f"the clocks moved {moved_s * 1000:.3f} ms apart")

    def _drops_agree(self, count: int) -> Check:
        sure = len(self._between(self._in, self._cut.done_at, self._healed.began_at - ON_THE_WAY_S))
        most = len(self._between(self._in, self._cut.began_at - ON_THE_WAY_S, self._healed.done_at))
        return Check(
            f"rule-equals-capture-{self._in.value}",
            sure <= count <= most,
            f"the rule dropped {count}; {sure} to {most} came in the dark",
        )

    def _is_complaint(self, message: IcmpMessage) -> bool:
        """Whether somebody told the container's kernel what became of the flow: no dark path does."""
        is_ours = self._fault.flow.direction_of(message.source, message.destination) is not None
        return is_ours and self._cut.began_at <= message.time_s < self._healed.began_at

    def _is_cut(self, direction: Direction) -> bool:
        return direction in self._fault.direction.directions

    def _between(self, direction: Direction, begin: float, end: float) -> list[Segment]:
        ends = self._fault.flow.ends(direction)
        return [
            segment
            for segment in self._interface.segments
            if (segment.source, segment.destination) == ends and begin <= segment.time_s < end
        ]
