"""A host and a remote that do not have the same carrier: both are told, and the next one is served."""

import asyncio
import contextlib

import pytest

from lab.host.protocol.messages import FinalizeSimulation, Ping
from lab.host.shell import transport, websocket
from lab.host.shell.failures import RequestFailed
from lab.host.shell.host import SessionHost
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import Transport
from lab.host.shell.websocket import NotWebSocket
from lab.host.tables.stage import LOOPBACK
from tests.host.shell.pairs import play, until

HANDSHAKE_S = 10.0
"""How long websockets waits for one."""


class Owner:
    """Of a host that is asked for nothing."""

    def __init__(self, lost: list[str]) -> None:
        self._lost = lost

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
        raise AssertionError((request_id, ask))

    def lost(self, why: str) -> None:
        self._lost.append(why)


def test_framed_tcp_at_a_websocket_is_refused_and_told_so_in_http() -> None:
    async def scenario() -> None:
        arrived: asyncio.Queue[Transport] = asyncio.Queue()
        refused: list[str] = []
        async with websocket.listening(LOOPBACK, 0, arrived.put_nowait, refused=refused.append) as port:
            remote = RemoteSession(await transport.connect(LOOPBACK, port))
            with pytest.raises(RequestFailed, match=r"begins like HTTP.*Fix: have the same carrier at both sides"):
                await remote.request(Ping())
            await remote.close()
            await until(lambda: refused, "the listener is told")
            assert "may speak framed TCP. Fix: have the same carrier at both sides" in refused[0]

            right = await websocket.connect(f"ws://{LOOPBACK}:{port}")
            right.abort()
            (await arrived.get()).abort()

    play(scenario)


def test_who_connects_and_says_nothing_is_refused_when_it_goes() -> None:
    async def scenario() -> None:
        refused: list[str] = []
        async with websocket.listening(LOOPBACK, 0, lambda _: None, refused=refused.append) as port:
            silent = await transport.connect(LOOPBACK, port)
            await silent.close()
            await until(lambda: refused, "the listener is told")
            assert refused == ["did not receive a valid HTTP request"]

    play(scenario)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n"], ids=["nothing", "half a request"])
def test_a_listeners_end_does_not_wait_for_who_is_no_websocket_yet(said: bytes) -> None:
    async def scenario() -> None:
        refused: list[str] = []
        loop = asyncio.get_running_loop()
        async with websocket.listening(LOOPBACK, 0, lambda _: None, refused=refused.append) as port:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            writer.write(said)
            right = await websocket.connect(f"ws://{LOOPBACK}:{port}")  # So that the one before has been taken.
            right.abort()
            began = loop.time()
        assert loop.time() - began < HANDSHAKE_S / 2
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert refused == []

    play(scenario)


def test_a_websocket_at_framed_tcp_is_told_of_by_name_at_both_ends() -> None:
    async def scenario() -> None:
        lost: list[str] = []

        hosts: list[SessionHost] = []
        async with transport.listening(
            LOOPBACK, 0, lambda made: hosts.append(SessionHost(made, owner=Owner(lost)))
        ) as port:
            url = f"ws://{LOOPBACK}:{port}"
            with pytest.raises(NotWebSocket, match=f"{url} is no WebSocket"):
                await websocket.connect(url)
            await hosts[0].wait_closed()
            assert "begins like HTTP" in lost[0]

            remote = RemoteSession(await transport.connect(LOOPBACK, port))
            with pytest.raises(RequestFailed, match="no active session"):
                await remote.request(Ping())
            await remote.close()
            await hosts[1].close()

    play(scenario)
