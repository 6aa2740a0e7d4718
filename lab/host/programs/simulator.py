"""A simulator as a program: it plays a user's turns, or those that are typed, and asks for the verdict.

================ ==========================================================================================
event            with
================ ==========================================================================================
listening        ``port``, and ``refused`` ``why``, with ``--listen``
connected
event            ``what``, and what it tells: ``role`` and ``text``, ``state``, or ``message``
told             ``reason``, ``error``: the session's end
answer           ``to`` a typed line, ``said``: what the agent said
failed           ``to`` a typed line, ``outcome``, ``why``
status           ``told``: the reason of the session's end, or null; ``ended``: how the transport ended, or null
note             see ``lab.host.machine.commands.Audit``
finalized        ``own``: the simulator's verdict on its turns; ``verdict``: the job's, or null; ``outcome`` and
                 ``error`` of the request for it; ``asked_s``: how long that took
ended            ``by``: how the transport ended
================ ==========================================================================================
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from lab.host.machine.remote import Watch
from lab.host.programs.common import note, one_that_comes, words
from lab.host.programs.options import TURNS
from lab.host.protocol.messages import (
    AgentStateChanged,
    CloseReason,
    ErrorTold,
    EventBody,
    ItemAdded,
    SessionClosed,
    Verdict,
)
from lab.host.shell import transport, websocket
from lab.host.shell.failures import RequestFailed
from lab.host.shell.remote import RemoteSession
from lab.host.shell.simulator import Simulation, simulate, spoken
from lab.host.shell.transport import Transport
from lab.host.typed import typed
from lab.programs.report import say


class SimulatorProgram:
    """One call.

    Args:
        given: The command line.
        transport: To the host.
    """

    def __init__(self, given: argparse.Namespace, transport: Transport) -> None:
        self._given = given
        watch = Watch(*given.watch) if given.watch else None
        self._remote = RemoteSession(transport, timeout_s=given.timeout, watch=watch, note=note)
        self._asked = 0
        self._answered = 0
        self._own: Verdict | None = None

    async def run(self) -> int:
        """Play it; the exit code."""
        telling = asyncio.ensure_future(self._tell())
        ended = asyncio.ensure_future(self._tell_end())
        if self._given.by_hand and not self._given.turn:
            await self._play_typed()
            found = await self._finalize(())
        else:
            beside = asyncio.ensure_future(self._say_typed()) if self._given.by_hand else None
            found = await self._finalize(self._given.turn or TURNS)
            if beside is not None:
                beside.cancel()
        say(
            "finalized",
            own=words(self._own),
            verdict=words(found.verdict),
            outcome=found.outcome.value,
            error=found.error,
            asked_s=found.asked_s,
        )
        await self._remote.close()
        await asyncio.gather(telling, ended)
        return 0 if found.verdict is not None and found.verdict.success else 1

    async def _finalize(self, turns: Sequence[str]) -> Simulation:
        def judge(heard: Sequence[str]) -> Verdict:
            # Of the turns that are played here, each one that is answered is heard; typed ones were counted.
            asked, answered = (len(turns), len(heard)) if turns else (self._asked, self._answered)
            self._own = Verdict(0 < asked == answered, f"{answered} of {asked} turns were answered")
            return self._own

        return await simulate(
            self._remote,
            turns,
            judge,
            await_close=self._given.await_close,
            close_timeout_s=self._given.close_timeout,
        )

    async def _play_typed(self) -> None:
        """Say what is typed, until that ends or nobody can hear it any more."""
        saying = asyncio.ensure_future(self._say_typed())
        ended = asyncio.ensure_future(self._remote.wait_ended())
        await asyncio.wait([saying, ended], return_when=asyncio.FIRST_COMPLETED)
        for task in (saying, ended):
            task.cancel()
        await asyncio.gather(saying, ended, return_exceptions=True)

    async def _say_typed(self) -> None:
        async for line in typed():
            if line == "status":
                told = None if self._remote.closed is None else self._remote.closed.reason.name
                say("status", told=told, ended=self._remote.ended_by)
            elif line:
                await self._turn(line)

    async def _turn(self, line: str) -> None:
        self._asked += 1
        try:
            result = await self._remote.run_input(line)
        except RequestFailed as failed:
            say("failed", to=line, outcome=failed.outcome.value, why=failed.why)
        else:
            self._answered += 1
            say("answer", to=line, said=spoken(result))

    async def _tell(self) -> None:
        async for body in self._remote.events():
            if isinstance(body, SessionClosed):
                say("told", reason=CloseReason(body.reason).name, error=body.error)
            else:
                say("event", what=type(body).__name__, **_told(body))

    async def _tell_end(self) -> None:
        say("ended", by=await self._remote.wait_ended())


def _told(body: EventBody) -> dict[str, Any]:
    """What an event tells, as far as these programs have it."""
    match body:
        case ItemAdded(item) if item is not None and item.message is not None:
            message = item.message
            return {"role": message.role.name.lower(), "text": "".join(part.text for part in message.content)}
        case AgentStateChanged(new_state=state):
            return {"state": state.name.lower()}
        case ErrorTold(message=message):
            return {"message": message}
        case _:
            return {}


@contextlib.asynccontextmanager
async def _reach(given: argparse.Namespace) -> AsyncIterator[Transport]:
    if given.listen:
        async with one_that_comes(given) as made:
            yield made
    elif given.websocket:
        yield await websocket.connect(f"ws://{given.host}:{given.port}")
    else:
        yield await transport.connect(given.host, given.port)


async def run_simulator(given: argparse.Namespace) -> int:
    """Play one call; the exit code."""
    async with _reach(given) as made:
        say("connected")
        return await SimulatorProgram(given, made).run()
