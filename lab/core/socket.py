"""One TCP socket as its kernel describes it (inet_diag, ``struct tcp_info``)."""

import enum
from dataclasses import dataclass

from lab.core.flow import Endpoint


class TcpState(enum.IntEnum):
    """Kernel states, numbered as in ``include/net/tcp_states.h``."""

    ESTABLISHED = 1
    SYN_SENT = 2
    SYN_RECV = 3
    FIN_WAIT1 = 4
    FIN_WAIT2 = 5
    TIME_WAIT = 6
    CLOSE = 7
    CLOSE_WAIT = 8
    LAST_ACK = 9
    LISTEN = 10
    CLOSING = 11
    NEW_SYN_RECV = 12


class Timer(enum.IntEnum):
    """What the socket waits for, numbered as ``idiag_timer`` (``inet_sk_diag_fill``)."""

    OFF = 0
    RETRANSMIT = 1
    """Retransmission, tail-loss probe or RACK reordering timer."""

    KEEPALIVE = 2
    TIME_WAIT = 3
    PROBE = 4
    """Zero-window probe; also what a local drop of the last segment leaves."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """Socket options that decide a give-up; None and False are the kernel's defaults."""

    user_timeout_s: float | None = None
    """TCP_USER_TIMEOUT; None where unset."""

    keepalive: bool = False
    """SO_KEEPALIVE."""

    keepalive_idle_s: float | None = None
    """TCP_KEEPIDLE; None means the namespace's tcp_keepalive_time."""

    keepalive_interval_s: float | None = None
    """TCP_KEEPINTVL; None means tcp_keepalive_intvl."""

    keepalive_count: int | None = None
    """TCP_KEEPCNT; None means tcp_keepalive_probes."""

    syn_retries: int | None = None
    """TCP_SYNCNT; None means tcp_syn_retries."""

    linger2_s: float | None = None
    """TCP_LINGER2; None means tcp_fin_timeout."""


@dataclass(frozen=True, slots=True)
class SocketSample:
    """One socket at one instant."""

    at: float
    """CLOCK_MONOTONIC of the node's kernel, seconds."""

    local: Endpoint
    remote: Endpoint
    state: TcpState
    timer: Timer
    expires_s: float | None
    """Seconds from ``at`` to the announced expiry; None without a timer. The wheel fires at or after it."""

    backoff: int
    """``icsk_backoff``; doublings since the last acknowledgment."""

    retransmits: int
    """``idiag_retrans``: retransmission time-outs, probes or keepalive probes so far, by ``timer``."""

    rto_s: float
    """``tcpi_rto``, backed off."""

    srtt_s: float
    rttvar_s: float
    unacked: int
    """Segments in flight."""

    total_retrans: int
    """``tcpi_total_retrans``."""

    not_sent_bytes: int
    """``tcpi_notsent_bytes``."""

    bytes_acked: int
    """``tcpi_bytes_acked``; the SYN counts as one."""

    bytes_received: int
    """``tcpi_bytes_received``."""

    recv_queue: int
    send_queue: int
    """Octets written and not acknowledged yet."""

    last_data_sent_s: float
    """Seconds since the last data segment was sent."""

    last_data_received_s: float
    last_ack_received_s: float
    peer_window: int
    """``tcpi_snd_wnd``, octets; 0 where the kernel does not tell."""

    inode: int
    """Socket inode; 0 for an orphan."""
