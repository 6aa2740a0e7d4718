"""The retransmission timer: initial value, tail-loss probe, and the bound that ``tcp_retries2`` stands for.

Sources: ``net/ipv4/tcp_input.c`` (``tcp_set_rto``), ``tcp_output.c`` (``tcp_schedule_loss_probe``), ``tcp_timer.c``
(``tcp_model_timeout``); RFC 6298, RFC 8985 section 7, RFC 9293 section 3.8.3.
"""

from lab.core.kernel import KernelSettings
from lab.core.timerwheel import to_jiffies

RTO_BASE_S = 0.2
"""TCP_RTO_MIN: what bounds are computed with, whatever tcp_rto_min_us says."""

SYN_RTO_S = 1.0
"""TCP_TIMEOUT_INIT: the timeout before any RTT sample (RFC 6298 section 2.1)."""

_PROBE_ALLOWANCE_S = 0.002
"""TCP_TIMEOUT_MIN_US: what a loss probe adds to two RTTs when several segments are in flight."""


def initial_rto_s(settings: KernelSettings, srtt_s: float = 0.0, rttvar_s: float = 0.0) -> float:
    """The timeout of a connection with these estimates, in whole jiffies.

    Args:
        settings: For the minimum, the maximum and HZ.
        srtt_s: Smoothed RTT.
        rttvar_s: ``tcpi_rttvar``; the kernel keeps it at the minimum RTO or above.

    Returns:
        Seconds; on a short path 0.204 with Linux's defaults.
    """
    hz = settings.hz
    minimum = to_jiffies(settings.rto_min_us / 1e6, hz)
    # tcp_rtt_estimator: an SRTT of zero cannot be; the kernel counts at least one eighth of a microsecond.
    estimate = to_jiffies(max(srtt_s, 1e-5) + max(rttvar_s, minimum / hz), hz)
    return min(estimate / hz, settings.rto_max_ms / 1000)


def loss_probe_s(settings: KernelSettings, rto_s: float, srtt_s: float, segments: int) -> float | None:
    """Delay of the tail-loss probe after the last send, or None where the kernel sends none.

    One segment in flight waits for a delayed acknowledgment too: two RTTs plus the minimum RTO. Never later than the
    retransmission timeout.

    Args:
        settings: For tcp_early_retrans, SACK, the minimum RTO and HZ.
        rto_s: Current timeout.
        srtt_s: Smoothed RTT.
        segments: In flight.
    """
    if settings.early_retrans not in (3, 4) or not settings.sack:
        return None
    minimum_s = to_jiffies(settings.rto_min_us / 1e6, settings.hz) / settings.hz
    delay_s = 2 * max(srtt_s, 1e-5) + (minimum_s if segments == 1 else _PROBE_ALLOWANCE_S)
    return min(to_jiffies(delay_s, settings.hz) / settings.hz, rto_s)


def model_timeout_s(retries: int, rto_max_s: float, rto_base_s: float = RTO_BASE_S) -> float:
    """How long ``retries`` timeouts would last with a first one of ``rto_base_s`` (``tcp_model_timeout``).

    A count in the sysctl, a duration in the kernel: exponential up to the largest doubling that fits below ``rto_max``,
    linear from there.
    """
    doublings = int(rto_max_s / rto_base_s + 1e-9).bit_length() - 1
    linear = max(0, retries - doublings)
    seconds = ((2 << (retries - linear)) - 1) * rto_base_s + linear * rto_max_s
    return round(seconds, 6)
