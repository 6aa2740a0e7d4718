"""One flow of a running container, cut off and watched: which one, what its socket did, and what proves the hole.

Nothing is predicted here: the programs, their settings and the path are the user's. But what is reported has to be
proved as in a run: the rules' counts are held against the captures, and nothing may have left beside the sink.
"""

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import UsageError
from lab.core.fault import Cut, Fault, Matched
from lab.core.segment_class import SegmentClass
from lab.core.socket import SocketSample
from lab.core.timeline import Observation
from lab.core.verdict import Check
from lab.run.candidates import candidates, choose
from lab.run.fate import orphaned
from lab.run.patience import Patience, Stopped
from lab.run.settle import NUDGE_TIMEOUT_S
from lab.run.sides import read_side
from lab.run.sinkwitness import SinkWitness
from lab.run.traffic import Traffic
from lab.testbed.ports import CaptureSummary, CutReceipt, SocketTrack

if TYPE_CHECKING:
    from lab.testbed.docker.sidecar.attach import Attachment

LOOK_S = 0.1
"""Between two looks at the socket's track."""

ALIVE_S = 1.0
"""Between two questions whether the container still runs."""

_NO_INTERFACE = frozenset({errno.EADDRNOTAVAIL, errno.ENETUNREACH, errno.ENETDOWN, errno.ENODEV})
"""What a send gives where an address or a route has gone."""


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
    def closed_at(self) -> float | None:
        """When the container's program was first seen to have closed the socket, CLOCK_MONOTONIC."""
        return closed_at(self.track, self.cut)

    @property
    def proved(self) -> bool:
        """Whether every proof was given."""
        return all(check.ok for check in self.checks)


def closed_at(track: SocketTrack, cut: CutReceipt) -> float | None:
    """When no program was seen to hold the socket any more, CLOCK_MONOTONIC; None where one did to the end."""
    return next((one.at for one in track.samples if one.at >= cut.began_at and orphaned(one)), None)


Tell = Callable[[Observation], None]


def attach(
    attachment: "Attachment", spec: AttachSpec, open_folder: Callable[[], Path], patience: Patience, tell: Tell
) -> Attached:
    """Cut, watch, heal, and prove; the flow passes again when this returns, whatever happens.

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
    sockets = attachment.sockets()
    chosen = choose(candidates(sockets, spec.port), spec.flow, spec.port, others=candidates(sockets, None))
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
    return _judge(attachment, watching, firewall, interface, healed, until, ended, folder, bit=bit)


def _judge(
    attachment: "Attachment",
    watching: "_Watching",
    firewall: str,
    interface: str,
    last_heal: CutReceipt,
    until: float,
    ended: str,
    folder: Path,
    *,
    bit: bool,
) -> Attached:
    """Bring the witnesses together."""
    fault, cut, healed = watching.fault, watching.cut, watching.healed or last_heal
    matched = attachment.matched(fault)
    summary = attachment.stop_capture(folder)
    witness = SinkWitness(fault, cut, healed, {side: read_side(path, summary) for side, path in summary.files.items()})
    return Attached(
        fault=fault,
        interface=interface,
        firewall=firewall,
        cut=cut,
        healed=healed,
        watched_until=until,
        ended=ended,
        matched=matched,
        track=attachment.track(fault),
        traffic=witness.traffic(until if watching.healed is None else summary.stopped_at, watching.healed),
        capture=summary,
        checks=(*witness.checks(matched, summary), Check("dark-to-the-end", bit, _BIT[bit])),
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
        self.fault = fault
        self.cut = cut
        self._patience = patience
        self._tell = tell
        self._told = 0
        self._told_of_close = False
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
        since = now - self.cut.done_at
        if spec.heal_after_s is not None and self.healed is None and since >= spec.heal_after_s:
            self.bit = _nudge(self._attachment, self.fault)
            self.healed = self._attachment.heal(self.fault)
            self._tell(Observation(self.healed.done_at, "lab", "heal", {}))
        track = self._attachment.track(self.fault)
        self._tell_copies(track)
        self._tell_close(track)
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
        base = next((s.total_retrans for s in track.samples if s.at >= self.cut.began_at), None)
        for sample in track.samples:
            copies = 0 if base is None or sample.at < self.cut.began_at else sample.total_retrans - base
            if copies > self._told:
                self._told = copies
                facts = {"copies": copies, "class": self._class_of_copy(sample), "rto_s": sample.rto_s}
                self._tell(Observation(sample.at, "container", "copy", facts))

    def _class_of_copy(self, sample: SocketSample) -> str | None:
        """Of the copy that left last; None after a heal, where acknowledgments may have asked for it.

        In the dark the timer alone makes copies, and a tail-loss probe is no time-out that the kernel counts.
        """
        if self.healed is not None:
            return None
        kind = SegmentClass.TIMEOUT_COPY if sample.retransmits else SegmentClass.TAIL_LOSS_PROBE
        return str(kind.value)

    def _tell_close(self, track: SocketTrack) -> None:
        if not self._told_of_close and (at := closed_at(track, self.cut)) is not None:
            self._told_of_close = True
            self._tell(Observation(at, "container", "closed", {}))


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
