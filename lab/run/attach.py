"""One flow of a running container, cut off and watched: which one, what its socket did, and what proves the hole.

Nothing is predicted here: the programs, their settings and the path are the user's. But what is reported has to be
proved as in a run: the rules' counts are held against the captures, and nothing may have left beside the sink.
"""

import errno
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.retransmission import classify
from lab.core.segment import Segment
from lab.core.socket import SocketSample, TcpState
from lab.core.timeline import Observation
from lab.core.verdict import Check
from lab.run.patience import Patience, Stopped
from lab.run.proofs import CLOCK_STEP_S
from lab.run.settle import NUDGE_TIMEOUT_S
from lab.run.sides import Side, kernel_segments, read_side, seen_from_sink
from lab.run.traffic import Traffic, read_traffic
from lab.testbed.ports import CaptureSummary, CutReceipt, SocketTrack

if TYPE_CHECKING:
    from lab.testbed.docker.attach import Attachment

LOOK_S = 0.1
"""Between two looks at the socket's track."""

ALIVE_S = 1.0
"""Between two questions whether the container still runs."""

ON_THE_WAY_S = 0.001
"""From a capture to the hook behind it: who was seen this long before a commit may have been dropped by it or not."""

_NO_INTERFACE = frozenset({errno.EADDRNOTAVAIL, errno.ENETUNREACH, errno.ENETDOWN, errno.ENODEV})
"""What a send gives where an address or a route has gone."""

FIRST, NEWEST = "first", "newest"


@dataclass(frozen=True, slots=True)
class AttachSpec:
    """What to do with which flow."""

    port: int | None = None
    """The server's; None takes every established flow for a candidate."""

    flow: str | None = None
    """Where several match: first, newest, a port, or ADDRESS:PORT of either end. None: there must be one."""

    direction: Cut = Cut.BOTH
    heal_after_s: float | None = None
    """From the cut; None leaves it dark until the end."""

    watch_s: float | None = None
    """How long to watch after the cut; None until the socket is gone, or after a heal has recovered."""

    def __post_init__(self) -> None:
        heal_s, watch_s = self.heal_after_s, self.watch_s
        if heal_s is not None and watch_s is not None and heal_s >= watch_s:
            raise UsageError(
                f"The heal, {heal_s:g} s after the cut, would come after the watch, which ends at {watch_s:g} s.",
                fix="watch for longer than that, or leave --heal-after out: every hole is healed at the end",
            )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An established flow of the container."""

    flow: FourTuple
    placement: Placement
    """Which end of it is in the container."""

    inode: int

    @property
    def local(self) -> Endpoint:
        """The container's end."""
        return self.flow.client if self.placement is Placement.CLIENT_SINK else self.flow.server

    @property
    def remote(self) -> Endpoint:
        """The other end."""
        return self.flow.server if self.placement is Placement.CLIENT_SINK else self.flow.client


@dataclass(frozen=True, slots=True)
class Attached:
    """What came of it."""

    fault: Fault
    interface: str
    firewall: str
    cut: CutReceipt
    healed: CutReceipt
    """Every hole is healed at the end."""

    watched_until: float
    """CLOCK_MONOTONIC."""

    ended: str
    """What ended the watch: gone, recovered, time, interrupted."""

    matched: Matched
    track: SocketTrack
    traffic: Traffic
    capture: CaptureSummary
    checks: Sequence[Check]

    @property
    def proved(self) -> bool:
        """Whether every proof was given."""
        return all(check.ok for check in self.checks)


def candidates(sockets: Sequence[SocketSample], port: int | None) -> list[Candidate]:
    """The established flows, oldest first as far as the kernel's inode numbers tell.

    Args:
        sockets: All of the container's.
        port: The server's, None for any.
    """
    listening = {one.local.port for one in sockets if one.state is TcpState.LISTEN}
    found = []
    for one in sockets:
        if one.state is not TcpState.ESTABLISHED or (
            port is not None and port not in (one.local.port, one.remote.port)
        ):
            continue
        serves = one.local.port == port if port is not None else one.local.port in listening
        if serves and one.remote.port != port:
            found.append(Candidate(FourTuple(one.remote, one.local), Placement.SERVER_SINK, one.inode))
        else:
            found.append(Candidate(FourTuple(one.local, one.remote), Placement.CLIENT_SINK, one.inode))
    return sorted(found, key=lambda candidate: candidate.inode)


def choose(found: Sequence[Candidate], choice: str | None, port: int | None = None) -> Candidate:
    """The flow that is meant.

    Raises:
        UsageError: none, or several and no choice that tells them apart.
    """
    matching = [one for one in found if _is_meant(one, choice)]
    if not matching:
        of = f" with port {port}" if port is not None else ""
        like = "" if choice in (None, FIRST, NEWEST) else f" that is {choice}"
        raise UsageError(f"The container has no established TCP flow{of}{like}.{_listed(found)}")
    if choice == FIRST:
        return matching[0]
    if choice == NEWEST:
        return matching[-1]
    if len(matching) > 1:
        raise UsageError(
            f"{len(matching)} established flows match.{_listed(matching)}",
            fix="--flow first, newest, a port, or ADDRESS:PORT of one end",
        )
    return matching[0]


def _is_meant(one: Candidate, choice: str | None) -> bool:
    if choice in (None, FIRST, NEWEST):
        return True
    return choice in {text for end in one.flow for text in (str(end.port), str(end))}


def _listed(found: Sequence[Candidate]) -> str:
    return "".join(f"\n  {one.flow}" for one in found)


Tell = Callable[[Observation], None]


def attach(
    attachment: "Attachment", spec: AttachSpec, open_folder: Callable[[], Path], patience: Patience, tell: Tell
) -> Attached:
    """Cut, watch, heal, and prove; the hole is open when this returns, whatever happens.

    Args:
        attachment: Open.
        spec: What to do.
        open_folder: Makes the folder for the captures, once it is known that there is something to cut.
        patience: Waits; when it is stopped, that ends the watch.
        tell: Called with each observation as it is made.

    Raises:
        UsageError: no flow, or no one flow.
        InvalidRun: the container ended meanwhile.
        Stopped: before the cut.
    """
    chosen = choose(candidates(attachment.sockets(), spec.port), spec.flow, spec.port)
    interface = attachment.interface(chosen.local, chosen.remote)
    fault = Fault(chosen.flow, spec.direction, placement=chosen.placement)
    folder = open_folder()
    attachment.prepare(fault, interface)
    firewall = attachment.firewall
    patience.pause(0)
    cut = attachment.cut(fault)
    watching = _Watching(attachment, spec, fault, cut, patience, tell)
    try:
        try:
            tell(Observation(cut.done_at, "lab", "cut", {"flow": str(chosen.flow), "end": chosen.placement.value}))
            ended = watching.watch()
            until = patience.now()
            bit = watching.bit if watching.healed is not None else _nudge(attachment, fault)
        finally:
            healed = attachment.heal(fault)
    except BaseException:
        # What was captured until then is kept.
        attachment.salvage(folder)
        raise
    if watching.healed is None:
        tell(Observation(healed.done_at, "lab", "heal", {}))
    matched = attachment.matched(fault)
    summary = attachment.stop_capture(folder)
    track = attachment.track(fault)
    healed = watching.healed or healed
    sides = {name: read_side(path, summary) for name, path in summary.files.items()}
    judged = _Judged(fault, cut, healed, sides)
    checks = [*judged.checks(matched, summary), Check("dark-to-the-end", bit, _BIT[bit])]
    traffic = judged.traffic(until if watching.healed is None else summary.stopped_at, watching.healed)
    return Attached(
        fault, interface, firewall, cut, healed, until, ended, matched, track, traffic, summary, tuple(checks)
    )


_BIT = {
    True: "the lab's own last segment came to the rule just before the heal, or the container had ended",
    False: "the lab's own last segment did not come to the rule: somebody else has changed the rules",
}


class _Watching:
    """The time between the cut and the end."""

    def __init__(
        self,
        attachment: "Attachment",
        spec: AttachSpec,
        fault: Fault,
        cut: CutReceipt,
        patience: Patience,
        tell: Tell,
    ) -> None:
        self._attachment = attachment
        self._spec = spec
        self._fault = fault
        self._cut = cut
        self._patience = patience
        self._tell = tell
        self._told = 0
        self._alive_at = cut.done_at
        self.healed: CutReceipt | None = None
        self.bit = True
        """Whether the rule bit just before that heal."""

    def watch(self) -> str:
        """Until the end; what ended it."""
        try:
            while True:
                if (ended := self._look()) is not None:
                    return ended
                self._patience.pause(LOOK_S)
        except Stopped:
            return "interrupted"

    def _look(self) -> str | None:
        now, spec = self._patience.now(), self._spec
        since = now - self._cut.done_at
        if spec.heal_after_s is not None and self.healed is None and since >= spec.heal_after_s:
            self.bit = _nudge(self._attachment, self._fault)
            self.healed = self._attachment.heal(self._fault)
            self._tell(Observation(self.healed.done_at, "lab", "heal", {}))
        track = self._attachment.track(self._fault)
        self._tell_copies(track)
        if track.gone_at is not None:
            self._tell(Observation(track.gone_at, "container", "gone", {"within_s": track.gone_within_s}))
            return "gone"
        if spec.watch_s is not None and since >= spec.watch_s:
            return "time"
        if spec.watch_s is None and self.healed is not None and self._has_recovered(track.samples[-1]):
            return "recovered"
        if now - self._alive_at >= ALIVE_S:
            self._alive_at = now
            self._attachment.require_running()
        return None

    def _has_recovered(self, sample: SocketSample) -> bool:
        return self.healed is not None and sample.at > self.healed.done_at and sample.send_queue == 0

    def _tell_copies(self, track: SocketTrack) -> None:
        base = next((s.total_retrans for s in track.samples if s.at >= self._cut.began_at), None)
        for sample in track.samples:
            copies = 0 if base is None or sample.at < self._cut.began_at else sample.total_retrans - base
            if copies > self._told:
                self._told = copies
                facts = {"copies": copies, "timer": sample.timer.name, "rto_s": sample.rto_s}
                self._tell(Observation(sample.at, "container", "copy", facts))


def _nudge(attachment: "Attachment", fault: Fault) -> bool:
    """Whether the rule has one of the lab's own segments that is sent now; True where that way is open.

    Where the program has ended with its flow, so has the container, and the engine has taken the interface away: then
    the flow's own segments have to do.
    """
    sunk = fault.placement.sunk
    if sunk not in fault.direction.directions:
        return True
    before, deadline = attachment.matched(fault).of(sunk), time.monotonic() + NUDGE_TIMEOUT_S
    try:
        attachment.nudge(fault)
    except OSError as error:
        if error.errno not in _NO_INTERFACE:
            raise
        return before > 0
    while attachment.matched(fault).of(sunk) == before:
        if time.monotonic() > deadline:
            return False
    return True


class _Judged:
    """Both captures of an attachment, against its rules."""

    def __init__(self, fault: Fault, cut: CutReceipt, healed: CutReceipt, sides: dict[str, Side]) -> None:
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

    def _is_cut(self, direction: Direction) -> bool:
        return direction in self._fault.direction.directions

    def _between(self, direction: Direction, begin: float, end: float) -> list[Segment]:
        ends = self._fault.flow.ends(direction)
        return [
            segment
            for segment in self._interface.segments
            if (segment.source, segment.destination) == ends and begin <= segment.time_s < end
        ]
