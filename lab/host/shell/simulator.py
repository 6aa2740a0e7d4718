"""A simulator: plays the user of an agent through its host, and asks for the verdict after the call."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.host.machine.commands import Outcome
from lab.host.protocol.messages import ChatRole, RunResult, SessionClosed, Verdict
from lab.host.shell.failures import NotTold, RequestFailed
from lab.host.shell.remote import RemoteSession


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of one."""

    heard: tuple[str, ...]
    """What the agent said, in order."""

    closed: SessionClosed | None
    """What was told of the session's end."""

    verdict: Verdict | None
    """The user's; None where there is none, or ``error`` says why it did not come."""

    outcome: Outcome
    """How the request for it ended."""

    error: str
    """Empty where it was answered."""

    asked_s: float
    """From that request to its end."""


Judge = Callable[[Sequence[str]], Verdict]
"""The simulator's own verdict, of what it heard."""


async def simulate(
    remote: RemoteSession,
    turns: Sequence[str],
    judge: Judge,
    *,
    timeout_s: float | None = None,
    await_close: bool = False,
    close_timeout_s: float | None = None,
) -> Simulation:
    """Say each turn until the agent or the turns are done, then finalize.

    Args:
        remote: The agent's host, seen from afar.
        turns: What the simulated user says.
        judge: The simulator's own verdict.
        timeout_s: How long the user's verdict is waited for; None for as long as any answer.
        await_close: Ask for it only when the session's end was told, or can be told no more.
        close_timeout_s: Or is waited for no longer; None for as long as the transport stands.
    """
    heard: list[str] = []
    # The end of an earlier session: whether there is another one, the first turn shows.
    before = remote.closed
    for text in turns:
        if remote.closed is not None and remote.closed is not before:
            break
        try:
            heard += spoken(await remote.run_input(text))
        except RequestFailed:
            break
    if await_close:
        await _closed(remote, close_timeout_s)
    return await _finalize(remote, tuple(heard), judge(heard), timeout_s)


async def _finalize(remote: RemoteSession, heard: tuple[str, ...], own: Verdict, timeout_s: float | None) -> Simulation:
    loop = asyncio.get_running_loop()
    began = loop.time()
    verdict, outcome, error = None, Outcome.ANSWERED, ""
    try:
        verdict = await remote.finalize_simulation(own, timeout_s=timeout_s)
    except RequestFailed as failed:
        outcome, error = failed.outcome, failed.why
    return Simulation(heard, remote.closed, verdict, outcome, error, loop.time() - began)


async def _closed(remote: RemoteSession, timeout_s: float | None) -> None:
    with contextlib.suppress(NotTold, TimeoutError):
        async with asyncio.timeout(timeout_s):
            await remote.wait_told()


def spoken(result: RunResult) -> list[str]:
    """What the agent said in a turn."""
    messages = [item.message for item in result.items if item.message is not None]
    return ["".join(c.text for c in m.content) for m in messages if m.role is ChatRole.ASSISTANT]
