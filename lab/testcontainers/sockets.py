"""What a socket does, in words."""

from collections.abc import Sequence

from lab.core.socket import SocketSample, TcpState, Timer

_NEXT = {
    Timer.RETRANSMIT: "the next copy is due",
    Timer.KEEPALIVE: "the next keepalive probe is due",
    Timer.TIME_WAIT: "its end is due",
    Timer.PROBE: "the next window probe is due",
}


def in_words(samples: Sequence[SocketSample], cut_at: float, now: float) -> str:
    """State, owner, copies and what is due of a socket that was watched.

    Args:
        samples: Of it, in order.
        cut_at: CLOCK_MONOTONIC.
        now: CLOCK_MONOTONIC.
    """
    if not samples:
        return "its socket was never seen"
    last = samples[-1]
    state = TcpState(last.state).name
    owner = "its program has closed it" if last.inode == 0 else "its program has it open"
    before = [one.total_retrans for one in samples if one.at < cut_at] or [samples[0].total_retrans]
    copies = last.total_retrans - before[-1]
    sent = f"{copies} {'copy' if copies == 1 else 'copies'} since the cut"
    return f"state {state}, {owner}, {sent}, {_due(last, now)}"


def _due(last: SocketSample, now: float) -> str:
    if last.timer is Timer.OFF or last.expires_s is None:
        return "no timer runs, so nothing is due"
    left_s = max(0.0, last.expires_s - (now - last.at))
    return f"{_NEXT[last.timer]} in {left_s:.2f} s"
