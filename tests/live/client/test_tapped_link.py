"""What both links do before they have a connection, and without one; with one it is in the tests of each."""

import asyncio

import pytest

from lab.live.client.link import Address, Failed, Phase
from lab.live.client.wire_link import WireLink
from lab.live.protocol.messages import Setup


class Deaf:
    """Ears of somebody whom nothing concerns."""

    def connected(self, local: Address, remote: Address) -> None: ...

    def heard(self, at: float) -> None: ...

    def pong(self, sent_at: float, at: float) -> None: ...


def test_what_was_aborted_before_it_began_never_dials() -> None:
    async def scenario() -> None:
        link = WireLink("ws://127.0.0.1:9", Deaf())
        link.abort()
        with pytest.raises(Failed, match="aborted before it began"):
            await link.connect(Setup("models/m"))

    asyncio.run(scenario())


def test_without_a_connection_nothing_is_written_closed_or_known() -> None:
    async def scenario() -> None:
        link = WireLink("ws://127.0.0.1:9", Deaf())
        link.ping()
        link.close()
        assert (link.phase, link.ending, link.unacknowledged(1.0)) == (Phase.CONNECT, None, None)

    asyncio.run(scenario())
