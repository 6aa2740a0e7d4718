"""When the kernel gives up: one prediction for every state of a socket whose path is dark.

The rules are Linux 6.18's, ``net/ipv4/tcp_timer.c`` above all. What decides:

=================  ==========================================================================================
established busy   first timeout at or past ``tcp_retries2`` (a duration) or the user timeout, from the first copy
established idle   nothing, or keepalive: a count, or with a user timeout the first probe tick past it
zero window        ``tcp_retries2`` unanswered probes (a count), or the user timeout from the first probe
SYN_SENT           a count, or a duration from the first SYN, whichever is met first
SYN_RECEIVED       ``tcp_synack_retries`` (a count)
orphan             ``tcp_orphan_retries`` (a duration; 0 is 8 until the RTO is at its maximum)
FIN_WAIT_2         ``tcp_fin_timeout``
=================  ==========================================================================================
"""

from functools import lru_cache

from lab.core.giveup_minisock import predict_fin_wait_2, predict_syn_received
from lab.core.giveup_probe import predict_idle, predict_zero_window
from lab.core.giveup_retransmit import predict_retransmission
from lab.core.prediction import GiveUp, Situation, State


@lru_cache(maxsize=256)
def predict(situation: Situation) -> GiveUp:
    """When and why the kernel ends this socket, and every copy before that.

    Args:
        situation: The socket at the moment the path goes dark, with what decides its end.

    Returns:
        The prediction; its ``give_up_s`` is None where nothing ends the socket.
    """
    match situation.state:
        case State.ZERO_WINDOW:
            return predict_zero_window(situation)
        case State.SYN_RECEIVED:
            return predict_syn_received(situation)
        case State.FIN_WAIT_2:
            return predict_fin_wait_2(situation)
        case State.ESTABLISHED if not situation.busy:
            return predict_idle(situation)
        case _:
            return predict_retransmission(situation)
