"""The client's address changes under its connections, as when a phone leaves Wi-Fi for a cellular network.

Nobody is told, and the old four-tuple can never come back. The client's IPv4 has no way any more to send what comes
from the old address; its IPv6 would still send it, and the router drops that, as a network does that knows its own
addresses. What the server sends there still arrives at the client, whose kernel drops it without a word, since the
address is not its own. So that it does, the router keeps the old address's neighbour: it would ask for it in vain
otherwise, and tell the server by ICMP after three seconds.
"""

from collections.abc import Sequence

from lab.core.errors import InvalidRun
from lab.testbed.agent.nodes import AgentNode
from lab.testbed.names import Addresses


def move(mover: AgentNode, router: AgentNode, nodes: Sequence[AgentNode], number: int) -> Addresses:
    """Give a node other addresses of its link in place of its own, in both families.

    Args:
        mover: An end.
        router: Its gateway.
        nodes: All, whose names for it follow.
        number: How often it has moved, this time included.

    Returns:
        What the other nodes know it by from now on.

    Raises:
        InvalidRun: the kernel did not do it.
    """
    before = Addresses(mover.ipv4, mover.ipv6)
    moves = {}
    try:
        for old in (before.ipv4, before.ipv6):
            if mover.ask("holds_address", old):
                moves[old] = str(mover.ask("free_address", old, number))
                router.ask("part_with", old, mover.ask("hardware_address", old))
        for old, new in moves.items():
            mover.ask("replace_address", old, new)
        for node in nodes:
            for old, new in moves.items():
                node.ask("rename", old, new)
    except OSError as error:
        raise InvalidRun(f"The {mover.name}'s address could not be changed: {error}.") from error
    after = Addresses(moves.get(before.ipv4, before.ipv4), moves.get(before.ipv6, before.ipv6))
    mover.now_at(after)
    return after
