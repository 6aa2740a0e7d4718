"""How one end's kernel ended its socket, read from samples and counters, and dated by all that bears witness."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.core.socket import SocketSample, TcpState, Timer
from lab.testbed.ports import Counters, SocketTrack

ABORTED = "TcpExtTCPAbortOnTimeout"

ENDED_OPEN = "TcpEstabResets"
"""Connections that ended straight from one of ``BEFORE_FIN`` (``tcp_set_state``), as every one does that its kernel
gives up before anybody has closed it."""

TIMERLESS = frozenset({"reset", "icmp"})
"""Ends that come from outside; every other one is an expiry of the socket's timer."""

EARLY_S = 0.012
"""How much before its announced expiry a timer may seem to fire: the kernel tells whole jiffies from the last tick that
it counted; three jiffies of 4 ms."""

ORPHAN_STATES = frozenset({TcpState.FIN_WAIT1, TcpState.LAST_ACK, TcpState.CLOSING})

BEFORE_FIN = frozenset({TcpState.ESTABLISHED, TcpState.CLOSE_WAIT})
"""Where a socket is that nobody has closed or shut down."""

CLOSED_STATES = ORPHAN_STATES | {TcpState.FIN_WAIT2, TcpState.TIME_WAIT}
"""Where a socket goes that its program closes; without an owner in another state it was not accepted yet."""


@dataclass(frozen=True, slots=True)
class KernelFate:
    """How one end's kernel ended the socket."""

    gone_at: float | None
    """When it stopped listing it, and had given up on it."""

    within_s: float
    cause: str | None
    """Value of ``Cause``; None where the kernel did not give up."""

    closed_at: float | None
    """When the program closed the socket first, at the latest."""

    held_at: float | None = None
    """When the program was last seen to hold a socket that it closed; None where the wire dates the close."""


def read_fate(
    track: SocketTrack,
    delta: Counters,
    cut_at: float,
    *,
    user_timeout: bool,
    reset: bool,
    as_closed: bool = False,
    told_at: float | None = None,
    reset_at: float | None = None,
) -> KernelFate:
    """What the samples and the counters say together.

    Args:
        track: The end's socket.
        delta: How far the node's counters moved since before the flow.
        cut_at: CLOCK_MONOTONIC.
        user_timeout: Whether TCP_USER_TIMEOUT is set on it.
        reset: Whether a RST reached this end after the cut.
        as_closed: Whether the fate is asked of a socket that its program has closed. Elsewhere a close is the program's
            decision, and what becomes of the orphan no answer to whether its kernel had given up.
        told_at: When the wire saw its first FIN, or its program said that it had closed; None where the program is
            known to have held the socket to its end. It tells of a close that no sample saw, because the socket was
            gone before the next look. Where nobody tells, the node's counters do.
        reset_at: When the wire saw a RST of its own after the cut. Of all that a kernel ends by itself keepalive alone
            says so: another one is a program's that let go of data it had not read, or would not wait.
    """
    closed_at = next((s.at for s in track.samples if s.at >= cut_at and orphaned(s)), None)
    held_at = None
    if closed_at is not None:
        held_at = next((s.at for s in reversed(track.samples) if s.at < closed_at and not orphaned(s)), None)
    unseen_at = _closed_unseen(track, delta, told_at)
    if unseen_at is not None:
        closed_at, held_at = unseen_at, min(track.samples[-1].at, unseen_at)
    if track.gone_at is None or not track.samples or (closed_at is not None and not as_closed):
        return KernelFate(None, 0.0, None, closed_at, held_at)
    aborted = reset_at is not None and reset_at <= track.gone_at + track.gone_within_s
    unseen = unseen_at is not None
    cause = _cause(track.samples, delta, user_timeout=user_timeout, reset=reset, unseen=unseen, aborted=aborted)
    if cause is None:
        # The kernel did not decide: whoever let it go was the program.
        return KernelFate(None, 0.0, None, track.gone_at if closed_at is None else closed_at, held_at)
    return KernelFate(track.gone_at, track.gone_within_s, cause, closed_at, held_at)


def orphaned(sample: SocketSample) -> bool:
    """Whether no program holds the socket any more."""
    return sample.inode == 0 and sample.state in CLOSED_STATES


def _closed_unseen(track: SocketTrack, delta: Counters, told_at: float | None) -> float | None:
    """By when it was closed after the last look at it, if it was, and gone before the next one."""
    if track.gone_at is None or not track.samples or track.samples[-1].state not in BEFORE_FIN:
        return None
    if told_at is not None and told_at <= track.gone_at + track.gone_within_s:
        return told_at
    # A timer ended a connection here, and none that was open: nobody had this one any more.
    return track.gone_at if delta.get(ABORTED, 0) and not delta.get(ENDED_OPEN, 0) else None


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
    return replace(fate, closed_at=ended_at, held_at=None)


def _cause(
    samples: Sequence[SocketSample], delta: Counters, *, user_timeout: bool, reset: bool, unseen: bool, aborted: bool
) -> str | None:
    last = samples[-1]
    # While the fatal timer's handler runs, the timer is no longer pending: the look before tells which one it was.
    timer = next((s.timer for s in reversed(samples) if s.timer is not Timer.OFF), Timer.OFF)
    if last.state in (TcpState.NEW_SYN_RECV, TcpState.SYN_RECV):
        return "synack-retries"
    if last.state in (TcpState.FIN_WAIT2, TcpState.TIME_WAIT):
        return "fin-timeout"
    if reset:
        return "reset"
    if not delta.get(ABORTED, 0) or (aborted and timer is not Timer.KEEPALIVE):
        return None
    if unseen:
        # What is in flight is the retransmission timer's, the FIN too, whatever timer was seen last.
        return "user-timeout" if user_timeout else "orphan-retries"
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
