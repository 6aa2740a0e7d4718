"""A verdict that cannot be delivered: its transport does not take it, or it waits behind what nobody reads."""

import asyncio
from dataclasses import replace

from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol.messages import FinalizeSimulation, UserInputTranscribed
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.transport import Transport
from lab.host.tables.finalizing import OWN, USERS
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import ROOM, SOON_S, Carrier, Stage, staged
from lab.host.tables.transports import Deaf, Refusing

BACKLOG, EACH = 64, 512 * 2**10
"""Events, and the octets of each: more than what kernels keep for one connection (tcp_wmem, tcp_rmem)."""

FULL_S = 0.2
"""How long a queue may go on being written without being full: loopback takes all of it in a tenth of that."""

QUICK_S = 0.3
"""The drain's time here, instead of 3 s."""

AT_ONCE, DRAINED, LATE = "shut down at once", "shut down after the drain", "shut down after the time-out"


async def undeliverable(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    variants = REPAIRED, VARIANTS["lost verdict waited for"]
    cases = [case(carrier, variant) for case in (refused, unread) for variant in variants]
    return await asyncio.gather(*cases)


async def refused(carrier: Carrier, variant: Variant) -> Row:
    """The transport stands, and does not take the verdict."""
    async with staged(carrier, variant, simulated=True, verdict=USERS, wrap=Refusing) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        return await _shut_down(stage, carrier, variant, "the verdict cannot be delivered", tries_s=0.0)


async def unread(carrier: Carrier, variant: Variant) -> Row:
    """The simulator reads nothing: the verdict waits in the host's program, behind full buffers."""
    hasty, ours = replace(carrier, drain_s=QUICK_S), list[Transport]()

    def keep(transport: Transport) -> Transport:
        ours.append(transport)
        return transport

    async with staged(hasty, variant, simulated=True, verdict=USERS, wrap=keep, wrap_remote=Deaf) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        for _ in range(BACKLOG):
            agent.tell(UserInputTranscribed(EACH * "x"))
        full = not await _written(ours[0])
        row = await _shut_down(stage, hasty, variant, "the verdict waits behind what nobody reads", tries_s=QUICK_S)
        # Nobody would answer its close.
        stage.transport.abort()
    return row if full else replace(row, seen="the buffers took all of it", right=False, shows=False)


async def _written(transport: Transport) -> bool:
    try:
        async with asyncio.timeout(FULL_S):
            await transport.flush()
    except TimeoutError:
        return False
    return True


async def _shut_down(stage: Stage, carrier: Carrier, variant: Variant, case: str, *, tries_s: float) -> Row:
    """Ask for the verdict and end the job.

    Args:
        stage: Where.
        carrier: Over what.
        variant: The host's.
        case: What the row is called.
        tries_s: How long the host may try to deliver it; its transport's end may take as long again.
    """
    asking = asyncio.ensure_future(stage.ask(FinalizeSimulation(OWN.success, OWN.reason)))
    async with asyncio.timeout(SOON_S):
        while not stage.judged:
            await asyncio.sleep(0.001)
    stage.job.shutdown()
    took_s = await stage.done()
    await asking
    once = stage.judged == [OWN]
    waited = carrier.sat_out(took_s, carrier.session_end_s)
    right = once and not waited and tries_s <= took_s < carrier.session_end_s
    seen = LATE if waited else DRAINED if tries_s else AT_ONCE
    return Row(
        Question.FINALIZING, case, variant.name, carrier.name, seen, took_s,
        right, not variant.counts_undeliverable, once and waited,
    )  # fmt: skip
