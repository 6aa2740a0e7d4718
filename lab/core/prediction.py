"""What a prediction is made from, and what it says."""

import enum
from dataclasses import dataclass

from lab.core.kernel import LINUX_DEFAULTS, KernelSettings
from lab.core.socket import SocketOptions

DEFAULT_OPTIONS = SocketOptions()
"""A socket that no program has changed."""


class State(enum.Enum):
    """What a socket is doing when its path goes dark."""

    ESTABLISHED = "established"
    ZERO_WINDOW = "zero-window"
    """Established, with data that the peer's closed window holds back."""

    SYN_SENT = "syn-sent"
    SYN_RECEIVED = "syn-received"
    """A connection request in the listener's queue, its SYN/ACK unanswered."""

    FIN_WAIT_1 = "fin-wait-1"
    LAST_ACK = "last-ack"
    FIN_WAIT_2 = "fin-wait-2"


class Cause(enum.Enum):
    """What ended a socket: the kernel's rule, or a message from the path."""

    RETRIES2 = "retries2"
    USER_TIMEOUT = "user-timeout"
    KEEPALIVE = "keepalive"
    """The keepalive timer, by its count or by a user timeout in its place; the one death that sends a RST."""

    PROBES = "probes"
    SYN_RETRIES = "syn-retries"
    SYNACK_RETRIES = "synack-retries"
    ORPHAN_RETRIES = "orphan-retries"
    FIN_TIMEOUT = "fin-timeout"
    RESET = "reset"
    ICMP = "icmp"
    NONE = "none"
    """Nothing ends it."""


class CopyKind(enum.Enum):
    """What is sent into the hole after the first loss, named as segment classes are."""

    TAIL_LOSS_PROBE = "tail-loss-probe"
    TIMEOUT_COPY = "timeout-copy"
    KEEPALIVE_PROBE = "keepalive-probe"
    WINDOW_PROBE = "window-probe"
    SYN_COPY = "syn-copy"
    FIN_COPY = "fin-copy"


@dataclass(frozen=True, slots=True)
class Situation:
    """One end of a connection at the moment the path goes dark."""

    state: State = State.ESTABLISHED
    busy: bool = True
    """Established only: whether data is sent into the hole, or is in flight already."""

    settings: KernelSettings = LINUX_DEFAULTS
    options: SocketOptions = DEFAULT_OPTIONS

    rto_s: float | None = None
    """Retransmission timeout before the loss, as ``tcpi_rto`` tells; None takes what an RTT of ``srtt_s`` gives."""

    srtt_s: float = 0.0
    """Smoothed RTT, seconds."""

    segments: int = 1
    """Sent into the hole at once; the tail-loss probe of two or more follows much sooner than that of one."""

    probe_sends_new_data: bool = False
    """More is queued than the congestion window lets out: the tail-loss probe carries new data and is no copy."""

    writes_on: bool = False
    """The program keeps writing after the first lost segment: each write moves the tail-loss probe, and the first
    timeout falls between one RTO after the first lost send and one RTO after the probe. Writes less than two RTTs and
    2 ms apart put it off further, until the congestion window is full."""

    orphan: bool = True
    """FIN_WAIT_1 and LAST_ACK: the program has closed its socket, rather than shut down one direction."""

    keepalive_due_s: float | None = None
    """Established and idle: when the keepalive timer is set to expire, from the last packet received. After a probe
    that was answered it is set to the interval, so that the first lost probe can come later than ``keepalive_idle_s``;
    None takes a timer that no probe has set."""

    peer_alive: bool = False
    """Zero window: the path is up and the peer answers the probes."""

    backoff: int = 0
    """Zero window: ``icsk_backoff`` when the last packet was received (a sample's backoff less its probes)."""

    probing_s: float | None = None
    """Zero window: how long before the last packet received the first probe was sent; None takes what ``backoff``
    implies. A user timeout counts from that probe."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One segment that the kernel sends into the hole after the first."""

    kind: CopyKind
    time_s: float
    """Most likely instant, seconds from the anchor."""

    window_s: tuple[float, float]
    """Earliest and latest instant."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One timer expiry at which the socket may die; two where the bound falls near a tick."""

    copies: int
    """Copies sent before it."""

    window_s: tuple[float, float]
    """Earliest and latest instant."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """When a kernel ends a socket whose path is dark.

    Seconds count from the first lost send where something is sent (data, SYN, SYN/ACK, FIN), from the last packet
    received where nothing is (idle, zero window, FIN_WAIT_2).
    """

    cause: Cause
    rule: str
    """The rule that decides, one sentence."""

    bound_s: float | None = None
    """What the elapsed time is compared with: from ``retrans_stamp`` (the first timeout copy, or the first SYN) for
    retransmissions, from the anchor for keepalive with a user timeout, from the first window probe; None where a
    count decides, or nothing does."""

    give_up_s: float | None = None
    """Most likely instant: the median over all phases of the timer wheel; None is never."""

    window_s: tuple[float, float] | None = None
    """Earliest and latest instant."""

    copies: tuple[int, int | None] = (0, 0)
    """Fewest and most copies; None where they go on for ever."""

    copy_times: tuple[Copy, ...] = ()
    """Every copy that may be sent, in order; the last ones may be missing where there are two candidates."""

    candidates: tuple[Candidate, ...] = ()
    """The expiries that may be the end, in order."""

    sends_reset: bool = False
    """Whether the end sends a RST into the hole: a keepalive death does, the others are silent."""
