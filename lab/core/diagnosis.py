"""What most likely happened to a flow, in plain sentences that claim no more than one vantage point can show."""

from collections.abc import Iterator

from lab.core.conversation import Conversation
from lab.core.fault import Cut
from lab.core.flow import Direction
from lab.core.segment import Flag
from lab.core.segment_class import SegmentClass, Trigger
from lab.core.silence import Episode, Kind, Silence, main_silence

_NAMES = {Direction.FORWARD: "client", Direction.RETURN: "server"}

ORPHAN_RETRIES = 8
"""What Linux makes of ``tcp_orphan_retries=0`` (``net/ipv4/tcp_timer.c``, ``tcp_orphan_retries``)."""

OLD_INITIAL_RTO_S = 2.5
"""A first wait at least this long comes from the 3 s initial timer of RFC 2988, or from a very slow path."""

REFUSED_RST_S = 1.0
"""A flow that goes on for longer after a RST was not ended by it."""


def diagnose(flow: Conversation) -> list[str]:
    """Sentences on a closed conversation, the most important first; never empty."""
    silence = flow.silence
    episode = main_silence(flow.episodes)
    sentences: list[str] = []
    if silence is not None and episode is not None:
        sentences += _of_silence(flow, silence, episode)
    sentences += [
        *_icmp(flow, silence),
        *_zero_window(flow),
        *_keepalives(flow, silence),
        *_loss(flow, silence),
        *_taps(flow),
        *_reset(flow, episode),
        *_still_open(flow, silence),
    ]
    if silence is None and not any(kind.is_copy for kind in flow.classes):
        sentences.insert(0, "Nothing was lost as far as this capture shows.")
    return sentences


def _of_silence(flow: Conversation, silence: Silence, episode: Episode) -> Iterator[str]:
    """What the silence was, how it ended, and what the capture cannot show about it."""
    first = episode.copies[0]
    if episode.kind is Kind.KEEPALIVE:
        yield _keepalive_death(flow, episode)
        return
    if episode.kind is Kind.WINDOW:
        yield (
            f"The {_NAMES[episode.direction]}'s window probes went unanswered: a closed window, and then a path "
            "that is dark or a peer that is gone. The sender gives up by the number of probes, not by time."
        )
        return
    if first.segment_class is SegmentClass.SYN_COPY:
        yield _syn(silence, episode)
    elif all(c.segment.flags & Flag.FIN.value for c in episode.copies):
        yield _fin(flow, silence, episode)
    else:
        yield _data(flow, silence, episode)
        if first.trigger is Trigger.TIMEOUT and (first.waited_s or 0.0) >= OLD_INITIAL_RTO_S:
            yield f"The first wait of {_time(first.waited_s or 0.0)} points to the 3 s initial timer of older stacks."
    if silence.healed_at is None:
        yield (
            "The last copy shows when the sender still tried, not when its kernel gave up (a death by timeout sends "
            "nothing), nor whether the path healed after the capture ended."
        )


def _syn(silence: Silence, episode: Episode) -> str:
    tries = len(episode.copies) + 1
    if episode.direction is Direction.RETURN:
        return f"The server sent its SYN/ACK {tries} times: the SYN/ACK was lost, or the client's ACK."
    if silence.healed_at is not None:
        return (
            f"The connect was blackholed for {_time(silence.healed_at - silence.since)}: of {tries} SYNs only the "
            "last was answered. The path healed, or the server began to listen."
        )
    return (
        f"The connect was blackholed: {tries} SYNs and no answer, neither SYN/ACK nor refusal. The SYNs or the "
        "answers were dropped without a word, or nothing is there."
    )


def _fin(flow: Conversation, silence: Silence, episode: Episode) -> str:
    name = _NAMES[episode.direction]
    what = "its last data and FIN" if any(c.segment.length for c in episode.copies) else "its FIN"
    if silence.healed_at is not None:
        return f"The {name} sent {what} {len(episode.copies) + 1} times before it was acknowledged."
    timeouts = sum(c.trigger is Trigger.TIMEOUT for c in episode.copies)
    peer_closed = any(m.direction is not episode.direction and m.time_s < episode.last_at for m in flow.fin)
    linux = f" Eight times is what Linux grants a closed socket (tcp_orphan_retries=0 means {ORPHAN_RETRIES})."
    return (
        f"The {name}, in {'LAST_ACK' if peer_closed else 'FIN_WAIT1'}, resent {what} {_count(timeouts, 'time')} by "
        "timeout and was never answered: most likely an orphan socket whose peer is gone or unreachable."
        f"{linux if timeouts == ORPHAN_RETRIES else ''}"
    )


def _keepalive_death(flow: Conversation, episode: Episode) -> str:
    name = _NAMES[episode.direction]
    probes = _count(len(episode.copies), "keepalive probe")
    if episode.healed_at is not None:
        return f"The connection was idle; {probes} of the {name} went unanswered before one was."
    reset = any(m.direction is episode.direction and m.time_s >= episode.last_at for m in flow.rst)
    end = f"then the {name} reset it: a keepalive death" if reset else "and the capture does not show how it ended"
    return (
        f"The connection was idle, {probes} of the {name} went unanswered, {end}. The path died, or the peer did, at "
        "some time between the last segment heard and the first probe."
    )


def _data(flow: Conversation, silence: Silence, episode: Episode) -> str:
    name, peer = _NAMES[episode.direction], _NAMES[episode.direction.opposite]
    span = ""
    if silence.healed_at is not None:
        span = f" It healed after {_time(silence.healed_at - silence.since)}, when a copy got through."
    if silence.certain:
        return _known_direction(silence, episode) + span
    resent = f"the {name} resent {_count(len(episode.copies), 'time')}"
    if flow.icmp:
        return f"An established flow broke off: {resent} and got no TCP answer from the {peer}.{span}"
    return (
        f"An established flow went silent: {resent} and nothing came from the {peer}, no data, RST or FIN. Most likely "
        f"a blackhole in both directions. From here a loss of the {name}'s segments and a loss of the answers look the "
        f"same: the {peer} may have the data.{span}"
    )


def _known_direction(silence: Silence, episode: Episode) -> str:
    if silence.direction is Cut.BOTH:
        return "Both directions were dead: each side resends, and neither hears the other."
    dead = Direction.FORWARD if silence.direction is Cut.FORWARD else Direction.RETURN
    alive, mute = _NAMES[dead.opposite], _NAMES[dead]
    if episode.deaf:
        detail = f"what the {alive} sends arrives and is acknowledged, but the {mute}'s answers do not get back"
    else:
        detail = f"the {alive}'s segments pass here and do not acknowledge what the {mute} resends"
    told = " The server has the request, the client is not told." if dead is Direction.RETURN else ""
    return f"Only the {dead.value} direction was dead: {detail}.{told}"


def _icmp(flow: Conversation, silence: Silence | None) -> Iterator[str]:
    if flow.icmp:
        meaning, _ = flow.icmp.most_common(1)[0]
        undo = " Linux undoes a doubling per such message (RFC 6069), so there are more copies." if silence else ""
        total = _count(sum(flow.icmp.values()), "ICMP message")
        yield f"The path complained: {total} ({meaning}). That is no silent blackhole.{undo}"


def _zero_window(flow: Conversation) -> Iterator[str]:
    probes = flow.classes[SegmentClass.WINDOW_PROBE]
    answered = sum(side.answered_probes for side in flow.sides.values())
    if probes and answered:
        yield (
            f"The receiver's window is closed and the receiver lives: {answered} of {_count(probes, 'window probe')} "
            "answered at once. This is back pressure, not loss."
        )


def _keepalives(flow: Conversation, silence: Silence | None) -> Iterator[str]:
    answered = sum(side.answered_keepalives for side in flow.sides.values())
    if answered and silence is None:
        yield f"{_count(answered, 'keepalive probe')} answered: idle, and alive."


def _loss(flow: Conversation, silence: Silence | None) -> Iterator[str]:
    """Copies outside of the silence, in one sentence."""
    since = float("inf") if silence is None else silence.since
    until = since if silence is None else silence.healed_at or float("inf")
    kinds = [c.segment_class for c in flow.copies if not since <= c.segment.time_s <= until]
    counts = {kind: kinds.count(kind) for kind in SegmentClass if kind.is_copy and kind in kinds}
    if counts:
        parts = ", ".join(f"{count} {kind.value}" for kind, count in counts.items())
        elsewhere = "" if silence is None else "Outside of the silence: "
        yield f"{elsewhere}{_count(sum(counts.values()), 'copy', 'copies')} ({parts}): ordinary loss or delay."


def _taps(flow: Conversation) -> Iterator[str]:
    taps = flow.classes[SegmentClass.TAP_DUPLICATE]
    if taps:
        yield (
            f"{_count(taps, 'packet')} captured twice (mirror port, two VLANs, or both sides of a router): not loss."
        )


def _reset(flow: Conversation, episode: Episode | None) -> Iterator[str]:
    if not flow.rst or (episode is not None and episode.kind is Kind.KEEPALIVE):
        return
    name = _NAMES[flow.rst[0].direction]
    last_at = max(side.last_at or 0.0 for side in flow.sides.values())
    if last_at - flow.rst[0].time_s > REFUSED_RST_S:
        yield f"A RST of the {name} did not end the flow: a damaged header, or one that the other side refused."
    else:
        yield f"The {name} reset the connection."


def _still_open(flow: Conversation, silence: Silence | None) -> Iterator[str]:
    if silence is None and not flow.fin and not flow.rst and not flow.classes[SegmentClass.WINDOW_PROBE]:
        yield (
            "The flow was still open at the end: an idle flow, and a sender whose segments are dropped before this "
            "vantage point (in its own OUTPUT chain), look the same here."
        )


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
