"""A conversation as the JSON object that ``lab explain`` promises; times count from the capture's first packet."""

from typing import Any

from lab.core.conversation import Conversation, Mark
from lab.core.diagnosis import diagnose
from lab.core.flow import Direction
from lab.core.segment_class import SegmentClass


def explanation(flow: Conversation, origin: float) -> dict[str, Any]:
    """What is known of a closed conversation, as JSON values.

    Args:
        flow: The conversation, after ``close``.
        origin: Time of the capture's first packet.

    Returns:
        Keys as in the command's contract; more may be added, none renamed.
    """
    return {
        "client": str(flow.flow.client),
        "server": str(flow.flow.server),
        "assumed": flow.assumed,
        "handshake": flow.handshake,
        "began_s": _since(min(s.first_at for s in flow.sides.values() if s.first_at is not None), origin),
        "ended_s": _since(max(s.last_at for s in flow.sides.values() if s.last_at is not None), origin),
        "segments": {d.value: flow.sides[d].segments for d in Direction},
        "octets": {d.value: flow.sides[d].octets for d in Direction},
        "classes": {kind.value: flow.classes[kind] for kind in SegmentClass if flow.classes[kind]},
        "silence": _silence(flow, origin),
        "copies": [
            {
                "time_s": _since(copy.segment.time_s, origin),
                "direction": copy.direction.value,
                "class": copy.segment_class.value,
                "trigger": None if copy.trigger is None else copy.trigger.value,
                "seq": copy.seq,
                "length": copy.segment.length,
            }
            for copy in flow.copies
        ],
        "copies_unlisted": flow.unlisted,
        "ladder": _ladder(flow),
        "last_copy_s": None if flow.last_copy_at is None else _since(flow.last_copy_at, origin),
        "rst": [_mark(mark, origin) for mark in flow.rst],
        "fin": [_mark(mark, origin) for mark in flow.fin],
        "icmp": dict(flow.icmp),
        "diagnosis": diagnose(flow),
    }


def _silence(flow: Conversation, origin: float) -> dict[str, Any] | None:
    silence = flow.silence
    if silence is None:
        return None
    return {
        "since_s": _since(silence.since, origin),
        "direction": silence.direction.value,
        "certain": silence.certain,
        "healed_s": None if silence.healed_at is None else _since(silence.healed_at, origin),
        "last_heard_s": None if silence.last_heard_at is None else _since(silence.last_heard_at, origin),
    }


def _ladder(flow: Conversation) -> dict[str, Any] | None:
    ladder = flow.ladder
    if ladder is None:
        return None
    return {
        "of": ladder.of.value,
        "base_s": round(ladder.base_s, 6),
        "cap_s": None if ladder.cap_s is None else round(ladder.cap_s, 6),
        "steps_s": [round(step_s, 6) for step_s in ladder.steps_s],
    }


def _mark(mark: Mark, origin: float) -> dict[str, Any]:
    return {"time_s": _since(mark.time_s, origin), "direction": mark.direction.value}


def _since(at: float, origin: float) -> float:
    return round(at - origin, 6)
