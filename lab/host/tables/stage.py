"""A job and its remote on one loopback connection, and what was done to their room."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from lab.host.machine.commands import Note, Outcome
from lab.host.machine.host import DRAIN_S
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.codec import Codec
from lab.host.protocol.messages import Answer, Ask, EventBody, Verdict
from lab.host.shell import transport as tcp
from lab.host.shell import websocket
from lab.host.shell.failures import RequestFailed
from lab.host.shell.job import Job
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import Transport
from lab.host.tables.transports import Wrap, as_it_is

LOOPBACK = "127.0.0.1"
ROOM = "room-1"

REQUEST_S = 2.0
"""How long a request waits here, instead of a minute: what is answered at all is answered within milliseconds."""

SESSION_END_S = 2.0
"""How long a shutdown waits for its simulator here."""

SOON_S = 10.0
"""For all that has to come; a machine may be busy."""

AT_ONCE_S = REQUEST_S / 2
"""For what waits for nobody: loopback takes milliseconds, a machine on which thirty testbeds start 0.6 s. What waits
for a time-out takes twice as long as this, what waits for a host's drain three times."""

LATER_S = 1.0
"""By which a time-out may be exceeded. Behind a shutdown's come a drain and the transport's end, ``QUICK_S`` each where
nobody reads."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """How messages are carried, and how long one is waited for."""

    name: str
    request_s: float = REQUEST_S
    session_end_s: float = SESSION_END_S
    drain_s: float = DRAIN_S

    def at_once(self, took_s: float) -> bool:
        """Whether it waited for nobody, and not for its time-out."""
        return took_s < min(AT_ONCE_S, self.request_s)

    def sat_out(self, took_s: float, timeout_s: float) -> bool:
        """Whether somebody waited for all of a time-out, and not for much longer than that."""
        return 0.99 * timeout_s <= took_s < timeout_s + LATER_S

    @contextlib.asynccontextmanager
    async def pair(self, theirs: Codec | None = None) -> AsyncIterator[tuple[Transport, Transport]]:
        """Both ends of a new connection: the host's, the remote's; whoever uses them ends them."""
        arrived: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
        if self.name == "tcp":
            async with tcp.listening(LOOPBACK, 0, arrived.set_result) as port:
                stream = await tcp.connect(LOOPBACK, port, theirs)
                yield await arrived, stream
        else:
            async with websocket.listening(LOOPBACK, 0, arrived.set_result) as port:
                socket = await websocket.connect(f"ws://{LOOPBACK}:{port}", theirs)
                yield await arrived, socket


TCP = Carrier("tcp")
WEBSOCKET = Carrier("websocket")
CARRIERS = (TCP, WEBSOCKET)


@dataclass(slots=True)
class Stage:
    """What a case works with."""

    job: Job
    remote: RemoteSession
    transport: Transport
    """The remote's."""

    events: list[EventBody]
    """What the remote was told, in order."""

    deleted: list[str]
    """Rooms, in order, once for each time."""

    judged: list[Verdict] = field(default_factory=list)
    """What the user's code was asked to judge."""

    request_s: float = REQUEST_S
    """How long a request waits."""

    notes: list[Note] = field(default_factory=list)
    """What the remote wrote down."""

    async def ask(self, ask: Ask) -> tuple[Answer | None, str, float]:
        """A request: its answer or None, what to write of it, and how long it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            answer = await self.remote.request(ask, timeout_s=self.request_s)
        except RequestFailed as failed:
            word = failed.outcome.value if failed.outcome is Outcome.TIMED_OUT else failed.why
            return None, word, loop.time() - began
        return answer, "answered", loop.time() - began

    async def done(self) -> float:
        """Wait for the job's end; how long that took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(SOON_S):
            await self.job.wait()
        return loop.time() - began

    async def over(self) -> None:
        """Wait until the remote has read all that was ever sent to it."""
        async with asyncio.timeout(SOON_S):
            await self.remote.wait_ended()


@contextlib.asynccontextmanager
async def staged(
    carrier: Carrier,
    variant: Variant = REPAIRED,
    *,
    simulated: bool = False,
    verdict: Verdict | None = None,
    wrap: Wrap = as_it_is,
    wrap_remote: Wrap = as_it_is,
    codec: Codec | None = None,
    **options: Any,
) -> AsyncIterator[Stage]:
    """A job and its remote.

    Args:
        carrier: What is between them.
        variant: The job's and its host's.
        simulated: Whether the remote is a simulator.
        verdict: What the user's code says at the end.
        wrap: What is made of the host's transport.
        wrap_remote: What is made of the remote's.
        codec: The remote's set.
        options: Of the job.
    """
    async with carrier.pair(codec) as (ours, theirs):
        deleted: list[str] = []
        judged: list[Verdict] = []

        async def judge(provisional: Verdict) -> Verdict | None:
            judged.append(provisional)
            return verdict

        def delete(room: str) -> None:
            # Whoever is in the room is thrown out of it.
            deleted.append(room)
            if room == ROOM:
                ours.abort()

        usual = {"session_end_timeout_s": carrier.session_end_s, "drain_s": carrier.drain_s}
        wanted: dict[str, Any] = {"on_simulation_end": judge, **usual, **options}
        job = Job(ROOM, wrap(ours), simulated=simulated, delete_room=delete, variant=variant, **wanted)
        notes: list[Note] = []
        remote = RemoteSession(wrap_remote(theirs), note=notes.append)
        stage = Stage(job, remote, theirs, [], deleted, judged, carrier.request_s, notes)
        reading = asyncio.get_running_loop().create_task(_read(stage))
        try:
            yield stage
        finally:
            await stage.remote.close()
            await reading
            job.shutdown()
            await stage.done()


async def _read(stage: Stage) -> None:
    async for body in stage.remote.events():
        stage.events.append(body)
