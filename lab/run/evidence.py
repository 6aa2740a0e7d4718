"""What one end's kernel and program did, read from capture, socket samples, counters and output together."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lab.core.flow import Direction
from lab.core.hole import Passage
from lab.core.retransmission import Classified, SegmentClass
from lab.core.segment import Flag
from lab.core.socket import SocketSample, TcpState, Timer
from lab.testbed.ports import Counters, Line, Process, SocketTrack

ABORTED = "TcpExtTCPAbortOnTimeout"
PROBES = frozenset({SegmentClass.KEEPALIVE_PROBE, SegmentClass.WINDOW_PROBE})
TIMERLESS = frozenset({"reset", "icmp"})
"""Ends that come from outside; every other one is an expiry of the socket's timer."""

EARLY_S = 0.012
"""How much before its announced expiry a timer may seem to fire: the kernel tells whole jiffies from the last tick that
it counted; three jiffies of 4 ms."""

ORPHAN_STATES = frozenset({TcpState.FIN_WAIT1, TcpState.LAST_ACK, TcpState.CLOSING})
CLOSED_STATES = ORPHAN_STATES | {TcpState.FIN_WAIT2, TcpState.TIME_WAIT}
"""Where a socket goes that its program closes; without an owner in another state it was not accepted yet."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one end put on the wire after the cut; times on CLOCK_MONOTONIC."""

    lost_at: float | None
    """When the first segment left that no acknowledgment came back for: what a kernel's timers count from."""

    heard_at: float | None
    """When this end last received a packet of the flow."""

    copies: tuple[Classified, ...]
    """Retransmissions and probes from the cut on, in order."""

    reset_at: float | None
    """When this end sent a RST into the hole, as a keepalive death does."""

    ended_at: float | None
    """When this end first sent a FIN or RST after the cut, as a close does."""

    recovered_at: float | None
    """When, after the heal, the other side first acknowledged what had been lost."""


def read_traffic(
    near: Sequence[Classified], direction: Direction, cut_at: float, healed_at: float | None, until: float
) -> Traffic:
    """One end's traffic, from the capture on its own side of the hole.

    Args:
        near: Every segment of the flow in that capture, both directions; times on CLOCK_MONOTONIC.
        direction: The way that this end sends in.
        cut_at: Just before the commit.
        healed_at: Just before the healing commit, or None.
        until: When the counters were read; what came later belongs to the tidying up.
    """
    mine = [c for c in near if c.direction is direction and c.segment.time_s <= until]
    heard = [c for c in near if c.direction is direction.opposite and c.segment.time_s <= until]
    dark_until = until if healed_at is None else healed_at
    acked = _highest_ack(c for c in heard if c.segment.time_s < dark_until)
    dark = [c for c in mine if c.segment.time_s < dark_until]
    lost = next((c for c in dark if _carries(c) and not _acknowledged(c, acked)), None)
    copies = tuple(
        c for c in mine if c.segment.time_s >= cut_at and (c.segment_class.is_copy or c.segment_class in PROBES)
    )
    recovered = None
    if healed_at is not None and lost is not None:
        recovered = next(
            (c.segment.time_s for c in heard if c.segment.time_s >= cut_at and _covers(c, lost)),
            None,
        )
    heard_times = [c.segment.time_s for c in heard if c.segment.time_s < dark_until]

    def first_with(flags: int) -> float | None:
        return next((c.segment.time_s for c in dark if c.segment.time_s >= cut_at and c.segment.flags & flags), None)

    return Traffic(
        lost_at=None if lost is None else lost.segment.time_s,
        heard_at=heard_times[-1] if heard_times else None,
        copies=copies,
        reset_at=first_with(Flag.RST),
        ended_at=first_with(Flag.RST | Flag.FIN),
        recovered_at=recovered,
    )


def _carries(classified: Classified) -> bool:
    return classified.segment.space > 0 and classified.segment_class is SegmentClass.FIRST


def _highest_ack(heard: Iterable[Classified]) -> int | None:
    acked: int | None = None
    for c in heard:
        if c.segment.flags & Flag.ACK and (acked is None or 0 < (c.segment.ack - acked) & 0xFFFF_FFFF < 0x8000_0000):
            acked = c.segment.ack
    return acked


def _acknowledged(sent: Classified, acked: int | None) -> bool:
    end = sent.segment.seq + sent.segment.space
    return acked is not None and (acked - end) & 0xFFFF_FFFF < 0x8000_0000


def _covers(heard: Classified, lost: Classified) -> bool:
    return bool(heard.segment.flags & Flag.ACK) and _acknowledged(lost, heard.segment.ack)


@dataclass(frozen=True, slots=True)
class KernelFate:
    """How one end's kernel ended the socket."""

    gone_at: float | None
    """When it stopped listing it, and had given up on it."""

    within_s: float
    cause: str | None
    """Value of ``Cause``; None where the kernel did not give up."""

    closed_at: float | None
    """When the program closed the socket first."""


def read_fate(
    track: SocketTrack, delta: Counters, cut_at: float, *, user_timeout: bool, reset: bool, orphan: bool = False
) -> KernelFate:
    """What the samples and the counters say together.

    Args:
        track: The end's socket.
        delta: How far the node's counters moved since before the flow.
        cut_at: CLOCK_MONOTONIC.
        user_timeout: Whether TCP_USER_TIMEOUT is set on it.
        reset: Whether a RST reached this end after the cut.
        orphan: Whether the run is about a socket that its program has closed. Elsewhere a close is the program's
            decision, and what becomes of the orphan no answer to whether its kernel had given up.
    """
    closed_at = next((s.at for s in track.samples if s.at >= cut_at and orphaned(s)), None)
    if track.gone_at is None or not track.samples or (closed_at is not None and not orphan):
        return KernelFate(None, 0.0, None, closed_at)
    cause = _cause(track.samples, delta, user_timeout=user_timeout, reset=reset)
    if cause is None:
        # The kernel did not decide: whoever let it go was the program.
        return KernelFate(None, 0.0, None, track.gone_at if closed_at is None else closed_at)
    return KernelFate(track.gone_at, track.gone_within_s, cause, closed_at)


def orphaned(sample: SocketSample) -> bool:
    """Whether no program holds the socket any more."""
    return sample.inode == 0 and sample.state in CLOSED_STATES


def dated_close(fate: KernelFate, track: SocketTrack, ended_at: float | None) -> KernelFate:
    """The same fate, its close dated by the FIN or RST that the wire saw, where samples allow it.

    Args:
        fate: As the samples tell it.
        track: The end's socket.
        ended_at: When the end sent its first FIN or RST; an earlier shutdown of one direction is no close.
    """
    if fate.closed_at is None or ended_at is None:
        return fate
    held = [s.at for s in track.samples if s.at < fate.closed_at and not orphaned(s)]
    if ended_at > fate.closed_at or (held and ended_at < held[-1]):
        return fate
    return replace(fate, closed_at=ended_at)


def _cause(samples: Sequence[SocketSample], delta: Counters, *, user_timeout: bool, reset: bool) -> str | None:
    last = samples[-1]
    # While the fatal timer's handler runs, the timer is no longer pending: the look before tells which one it was.
    timer = next((s.timer for s in reversed(samples) if s.timer is not Timer.OFF), Timer.OFF)
    if last.state in (TcpState.NEW_SYN_RECV, TcpState.SYN_RECV):
        return "synack-retries"
    if last.state in (TcpState.FIN_WAIT2, TcpState.TIME_WAIT):
        return "fin-timeout"
    if reset:
        return "reset"
    if not delta.get(ABORTED, 0):
        return None
    if timer is Timer.KEEPALIVE:
        # With a user timeout too: it only moves the expiry at which this timer kills.
        return "keepalive"
    if user_timeout:
        return "user-timeout"
    if last.state is TcpState.SYN_SENT:
        return "syn-retries"
    if timer is Timer.PROBE:
        return "probes"
    return "orphan-retries" if last.state in ORPHAN_STATES and last.inode == 0 else "retries2"


def announced_expiry(track: SocketTrack, fate: KernelFate) -> float | None:
    """Before when a socket that its own timer ended cannot have ended: a kernel's timer is never early.

    Where the sampler got no processor in time, the last sample is old; what it announced still holds. On a path that is
    dark nothing comes that would set the timer to something earlier.
    """
    if fate.gone_at is None or fate.cause is None or fate.cause in TIMERLESS:
        return None
    last = track.samples[-1]
    return None if last.expires_s is None else last.at + last.expires_s - EARLY_S


def narrowed(fate: KernelFate, not_before: float | None, not_after: float | None) -> KernelFate:
    """The same fate, dated more closely by other witnesses.

    Args:
        fate: As the samples tell it.
        not_before: The last copy on the wire, or the expiry that was announced: the socket still lived.
        not_after: A program was given the error, or the wire saw the reset: it was over.
    """
    if fate.gone_at is None:
        return fate
    low, high = fate.gone_at - fate.within_s, fate.gone_at + fate.within_s
    if not_before is not None and low < not_before <= high:
        low = not_before
    if not_after is not None and low <= not_after < high:
        high = not_after
    return replace(fate, gone_at=(low + high) / 2, within_s=(high - low) / 2)


@dataclass(frozen=True, slots=True)
class Noticing:
    """When and how a program showed that it knew."""

    at: float | None
    by: str | None
    """output, close, exit or error."""

    errno: str | None
    """Name of the first error that one of the lab's own programs was given."""


def read_noticing(
    process: Process | None, fate: KernelFate, cut_at: float, *, pattern: str | None, own: bool
) -> Noticing:
    """The program's end of the story.

    Args:
        process: The end's program.
        fate: The kernel's.
        cut_at: CLOCK_MONOTONIC.
        pattern: What a line of the output must match; then nothing else counts.
        own: Whether it is a program of the lab's own, which prints its errors as JSON lines.
    """
    if process is None:
        return Noticing(None, None, None)
    lines = [line for line in process.lines if line.at >= cut_at]
    error = (
        next((e for e in map(event_of, lines) if e is not None and e.get("event") == "error"), None) if own else None
    )
    errno = None if error is None else str(error.get("errno"))
    if pattern is not None:
        found = next((line.at for line in lines if re.search(pattern, line.text)), None)
        return Noticing(found, None if found is None else "output", errno)
    signs: list[tuple[float, str]] = []
    if fate.closed_at is not None and (fate.gone_at is None or fate.closed_at < fate.gone_at):
        signs.append((fate.closed_at, "close"))
    if error is not None:
        signs.append((instant_of(error), "error"))
    if process.exited_at is not None and process.exited_at >= cut_at:
        signs.append((process.exited_at, "exit"))
    at, by = min(signs, default=(None, None))
    return Noticing(at, by, errno)


def has_told(process: Process | None, cut_at: float, *, pattern: str | None, own: bool) -> bool:
    """Whether nothing more need be waited for: the program has shown what it makes of its connection's end.

    Args:
        process: The end's program.
        cut_at: CLOCK_MONOTONIC; what was printed before tells nothing.
        pattern: What a line of the output must match.
        own: Whether it is a program of the lab's own.
    """
    if process is None or process.returncode is not None:
        return True
    lines = [line for line in process.lines if line.at >= cut_at]
    if pattern is not None:
        return any(re.search(pattern, line.text) for line in lines)
    return own and any(e is not None and e.get("event") in ("error", "closed") for e in map(event_of, lines))


def event_of(line: Line) -> Mapping[str, object] | None:
    """The JSON object that a program of the lab's own printed, or None for any other line."""
    try:
        event = json.loads(line.text)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def first_error(lines: Iterable[Line]) -> Mapping[str, object] | None:
    """The first error that a program of the lab's own reports in these lines."""
    return next((e for e in map(event_of, lines) if e is not None and e.get("event") == "error"), None)


def instant_of(event: Mapping[str, object]) -> float:
    """When the event happened, CLOCK_MONOTONIC."""
    return float(str(event["at"]))


def crossed_summary(passages: Iterable[Passage]) -> dict[str, int]:
    """Segments that came through the hole, and how many of them said that it was over."""
    crossed = [segment for passage in passages for segment in passage.crossed]
    return {
        "segments": len(crossed),
        "rst": sum(1 for s in crossed if s.flags & Flag.RST),
        "fin": sum(1 for s in crossed if s.flags & Flag.FIN),
    }
