"""A simulator as a program: it plays a user's turns, or those that are typed, and asks for the verdict.

================ ==========================================================================================
event            with
================ ==========================================================================================
listening        ``port``, with ``--listen``
refused          ``why``: one too many, or one with another carrier, with ``--listen``
connected
event            ``what``, and what it tells: ``role`` and ``text``, ``state``, or ``message``
told             ``reason``, ``error``: the session's end
answer           ``to`` a typed line, ``said``: what the agent said
failed           ``to`` a typed line, ``outcome``: refused, timed out, lost, or not sent; ``why``
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

from lab.core.flow import Endpoint
from lab.host.machine.remote import Watch
from lab.host.programs.common import Program, beginning, note, one_that_comes, run, say, words
from lab.host.programs.options import TURNS
from lab.host.programs.typed import typed
from lab.host.protocol.errors import FrameTooLong
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

NOT_SENT = "not sent"
"""How a turn ended that no message can hold."""


class SimulatorProgram(Program):
    """The user of one call, and who leads it."""

    def __init__(self, given: argparse.Namespace, transport: Transport) -> None:
        super().__init__(given, transport)
        watch = Watch(*given.watch) if given.watch else None
        self._remote = RemoteSession(transport, timeout_s=given.timeout, watch=watch, note=note)
        self._asked = 0
        self._answered = 0
        self._own: Verdict | None = None

    async def run(self) -> int:
        """See ``Program``: it is over when the verdict is there, or cannot be."""
        self._beside.start(self._tell())
        self._beside.start(self._tell_end())
        if self._given.by_hand and not self._given.turn:
            await self._play_typed()
            found = await self._finalize(())
        else:
            saying = self._beside.start(self._say_typed()) if self._given.by_hand else None
            found = await self._finalize(self._given.turn or TURNS)
            if saying is not None:
                saying.cancel()
        say(
            "finalized",
            own=words(self._own),
            verdict=words(found.verdict),
            outcome=found.outcome.value,
            error=found.error,
            asked_s=found.asked_s,
        )
        await self._remote.close()
        await self._beside.join()
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
        either = self._beside.start(self._say_typed()), self._beside.start(self._remote.wait_ended())
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for task in either:
            task.cancel()
        await asyncio.wait(either)

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
        except FrameTooLong as error:
            say("failed", to=line, outcome=NOT_SENT, why=str(error))
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
        return
    with beginning(given):
        made = await (
            websocket.connect(f"ws://{Endpoint(given.host, given.port)}")
            if given.websocket
            else transport.connect(given.host, given.port)
        )
    yield made


async def run_simulator(given: argparse.Namespace) -> int:
    """Play one call; the exit code."""
    return await run(SimulatorProgram, given, _reach(given))
