"""A capture file into conversations, in one pass and bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lab.core.budget import Budget
from lab.core.conversation import Conversation
from lab.core.flow import Endpoint
from lab.core.icmp import IcmpMessage
from lab.core.segment import Flag, Segment
from lab.pcap.capture import Capture

MAX_FLOWS = 20_000
"""Flows that are followed; of a scan or a flood the rest is counted only. At 10 kB each, result included, 200 MB."""

_TICK = 1 << 14
_SYN = Flag.SYN.value


@dataclass(slots=True)
class Flows:
    """What a capture holds."""

    capture: Capture
    conversations: list[Conversation] = field(default_factory=list)
    """In order of their first segment; all closed."""

    not_followed: int = 0
    """Segments of flows beyond ``MAX_FLOWS``."""

    budget: Budget = field(default_factory=Budget)
    """What is left of the memory that the flows share."""

    until: float = 0.0
    """Time of the last packet."""

    @property
    def origin(self) -> float:
        """Time of the capture's first packet, which times count from."""
        return self.capture.first_time_s or 0.0


def read_flows(capture: Capture, *, tick: Callable[[], None] | None = None) -> Flows:
    """All conversations of a capture.

    Args:
        capture: Not read yet.
        tick: Called every few thousand packets.

    Raises:
        UsageError: the file is missing, empty, not a capture, or holds no TCP.
    """
    found = Flows(capture)
    current: dict[tuple[Endpoint, Endpoint], Conversation] = {}
    for number, packet in enumerate(capture.packets()):
        if tick is not None and not number % _TICK:
            tick()
        if packet.time_s > found.until:
            found.until = packet.time_s
        conversation = current.get((packet.source, packet.destination))
        if isinstance(packet, IcmpMessage):
            if conversation is not None:
                conversation.add_icmp(packet)
            continue
        if conversation is None or (packet.flags & _SYN and conversation.ended_by(packet)):
            if len(found.conversations) >= MAX_FLOWS:
                found.not_followed += 1
                continue
            conversation = _follow(found, current, packet)
        conversation.add(packet)
    if not found.conversations:
        raise capture.no_tcp()
    for conversation in current.values():
        conversation.close(found.until)
    return found


def _follow(found: Flows, current: dict[tuple[Endpoint, Endpoint], Conversation], first: Segment) -> Conversation:
    key = first.source, first.destination
    before = current.get(key)
    if before is not None:
        before.close(first.time_s)
    conversation = Conversation(first, found.budget)
    found.conversations.append(conversation)
    found.budget.share(len(found.conversations))
    current[key] = current[key[1], key[0]] = conversation
    return conversation
