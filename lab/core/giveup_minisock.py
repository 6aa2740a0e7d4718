"""Give-up of what has no full socket: a connection request, and the time-wait of FIN_WAIT_2.

Sources: ``reqsk_timer_handler`` (``net/ipv4/inet_connection_sock.c``), ``tcp_fin_time`` (``include/net/tcp.h``),
``tcp_keepalive_timer`` (``tcp_timer.c``), ``tcp_time_wait`` (``tcp_minisocks.c``).
"""

from lab.core.courses import all_courses_of, summarise
from lab.core.front import Front
from lab.core.prediction import Cause, CopyKind, GiveUp, Situation
from lab.core.rto import SYN_RTO_S, initial_rto_s
from lab.core.timerwheel import to_jiffies

_SYNACK_RTO_MAX_S = 120.0
"""TCP_RTO_MAX: SYN/ACK timers of Linux 6.18 do not read tcp_rto_max_ms."""

_TIMEWAIT_S = 60.0
"""TCP_TIMEWAIT_LEN."""

_LINGER2_MAX_S = 120.0
"""TCP_FIN_TIMEOUT_MAX: a larger TCP_LINGER2 counts as this."""

_NEVER_FIN_WAIT_2 = GiveUp(Cause.NONE, "the program still holds the socket: FIN_WAIT_2 has no limit")


def predict_syn_received(situation: Situation) -> GiveUp:
    """When a listener forgets a connection request whose SYN/ACK is never answered, nor its SYN repeated.

    TCP_SYNCNT of the listener replaces ``tcp_synack_retries``; user timeout and ``tcp_rto_max_ms`` have no effect. A
    queue more than half full shortens the count (``reqsk_timer_handler``), which this leaves out.
    """
    retries, hz = synack_retries(situation), situation.settings.hz

    def walk(front: Front) -> None:
        front.wait(synack_wait(0, hz))
        for timeouts in range(1, retries + 1):
            front.copy()
            front.wait(synack_wait(timeouts, hz))
        front.end()

    windows = summarise(all_courses_of(walk), lambda _: CopyKind.SYN_COPY, hz)
    return GiveUp(cause=Cause.SYNACK_RETRIES, rule=f"expiry after {retries} copies of the SYN/ACK", **windows._asdict())


def synack_retries(situation: Situation) -> int:
    """How many copies of the SYN/ACK are sent."""
    return situation.options.syn_retries or situation.settings.synack_retries


def synack_wait(timeouts: int, hz: int) -> int:
    """Jiffies up to the next expiry after so many timeouts (``tcp_reqsk_timeout``)."""
    return min(to_jiffies(SYN_RTO_S, hz) << min(timeouts, 32), to_jiffies(_SYNACK_RTO_MAX_S, hz))


def predict_fin_wait_2(situation: Situation) -> GiveUp:
    """When an orphan in FIN_WAIT_2 goes; a socket that the program still holds stays for ever.

    Up to 60 s the wait is ``tcp_fin_timeout``, at least 3.5 RTOs. Above, the kernel waits for what exceeds 60 s, and
    then once more for the same (``tcp_keepalive_timer`` hands only the excess to ``tcp_time_wait``): 61 s become 2 s.
    """
    if not situation.orphan:
        return _NEVER_FIN_WAIT_2
    waits, hz = fin_wait_2_waits(situation), situation.settings.hz

    def walk(front: Front) -> None:
        for wait in waits:
            front.wait(wait)
        front.end()

    windows = summarise(all_courses_of(walk), lambda _: CopyKind.FIN_COPY, hz)
    rule = "the wait of tcp_fin_timeout" if len(waits) == 1 else "twice what tcp_fin_timeout exceeds 60 s by"
    return GiveUp(cause=Cause.FIN_TIMEOUT, rule=rule, bound_s=sum(waits) / hz, **windows._asdict())


def fin_wait_2_waits(situation: Situation) -> list[int]:
    """The waits that an orphan's FIN_WAIT_2 lasts, in jiffies."""
    settings, options = situation.settings, situation.options
    rto_s = situation.rto_s if situation.rto_s is not None else initial_rto_s(settings, situation.srtt_s)
    asked_s = min(options.linger2_s, _LINGER2_MAX_S) if options.linger2_s else settings.fin_timeout_s
    rto = to_jiffies(rto_s, settings.hz)
    least = (rto << 2) - (rto >> 1)
    timeout, limit = max(to_jiffies(asked_s, settings.hz), least), to_jiffies(_TIMEWAIT_S, settings.hz)
    return [timeout] if timeout <= limit else [timeout - limit, max(timeout - limit, least)]
