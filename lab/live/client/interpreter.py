"""Carries out a script, one step after the other; each step is one method of its name."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from lab.live.client import steps
from lab.live.client.events import Events
from lab.live.client.lines import Line
from lab.live.client.link import Failed, Refused
from lab.live.clock import Clock

T = TypeVar("T")

PASSIVE = (steps.Await, steps.Watch, steps.HoldResult, steps.LapseTime)
"""Steps that cause nothing that anybody waits for: what came before them still counts."""


class Stuck(Exception):
    """A step waited for what did not come."""


class Actor(Protocol):
    """What a script can make the assistant do; see ``Assistant``."""

    clock: Clock
    events: Events

    async def open(self, *, handle: str | None, transparent: bool, timeout_s: float) -> Line:
        """A first or new connection, used from now on."""

    async def resume(self, timeout_s: float) -> Line:
        """One attempt with the handle; its connection is used from now on."""

    async def say(self, clip: str) -> None:
        """Speak."""

    def type(self, text: str, *, turn: bool) -> None:
        """Type."""

    def drop(self, how: str) -> None:
        """End the connection in use."""

    def close_old(self, code: int) -> None:
        """Close what was lost."""

    def reuse_old(self) -> None:
        """Use what was lost."""

    def hold_results(self, hold: bool) -> None:
        """Keep results back, or no longer."""

    async def answer(self, text: str) -> None:
        """Ask, wait for the answer, judge it."""

    async def lapse(self, factor: float) -> None:
        """Change session time's speed."""

    async def recover(self) -> None:
        """Recover by the policy."""

    def account(self) -> None:
        """Say the bookings and the ledger."""


class Interpreter:
    """Runs a script.

    Args:
        actor: Who acts.
    """

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._events = actor.events
        self._clock = actor.clock
        self._after = 0
        """Events before this place in the log are not waited for any more."""

    async def run(self, script: Sequence[steps.Step]) -> bool:
        """Carry out the steps and say the account; whether all of them could be."""
        numbered = list(enumerate(script, 1))
        if not script or not isinstance(script[0], steps.Connect):
            numbered.insert(0, (0, steps.Connect()))
        ok = True
        for number, step in numbered:
            if isinstance(step, steps.End):
                break
            if not isinstance(step, PASSIVE):
                self._after = len(self._events.log)
            try:
                await self._perform(step)
            except (Stuck, Refused, Failed) as error:
                self._events.tell("stuck", step=number, do=step.do, why=str(error))
                ok = False
                break
        ok = ok and all(event.name != "defect" for event in self._events.log)
        self._actor.account()
        self._events.tell("done", ok=ok)
        return ok

    async def _perform(self, step: steps.Step) -> None:
        method: Callable[[Any], Awaitable[None]] = getattr(self, "_" + step.do.replace("-", "_"))
        await method(step)

    async def _connect(self, step: steps.Connect) -> None:
        try:
            await self._actor.open(handle=step.handle, transparent=step.transparent, timeout_s=step.timeout_s)
        except (Refused, Failed):
            if not step.may_fail:
                raise

    async def _fresh(self, step: steps.Fresh) -> None:
        await self._actor.open(handle=None, transparent=False, timeout_s=step.timeout_s)

    async def _say(self, step: steps.Say) -> None:
        await self._actor.say(step.clip)

    async def _type(self, step: steps.Type) -> None:
        self._actor.type(step.text, turn=step.turn)

    async def _await(self, step: steps.Await) -> None:
        names = step.event.split("|")
        place, event = await self._within(
            self._events.wait_for(*names, after=self._after), step.timeout_s, f"no {step.event}"
        )
        self._after = place + 1
        await self._clock.sleep_until(event.t + step.plus_s)

    async def _mark(self, step: steps.Mark) -> None:
        self._events.tell("mark", name=step.name)

    async def _drop(self, step: steps.Drop) -> None:
        self._actor.drop(step.how)

    async def _resume(self, step: steps.Resume) -> None:
        if step.close_old_first:
            self._actor.close_old(1000)
        began = self._clock.now()
        for offset in offsets(step):
            await self._clock.sleep_until(began + offset)
            try:
                await self._actor.resume(step.timeout_s)
            except (Refused, Failed):
                continue  # Told already.
            return
        self._events.tell("not_resumed")

    async def _reuse_old(self, step: steps.ReuseOld) -> None:  # noqa: ARG002 - every step is given to its method
        self._actor.reuse_old()

    async def _close_old(self, step: steps.CloseOld) -> None:
        self._actor.close_old(step.code)

    async def _watch(self, step: steps.Watch) -> None:
        await self._clock.sleep(step.for_s)

    async def _hold_result(self, step: steps.HoldResult) -> None:  # noqa: ARG002
        self._actor.hold_results(True)

    async def _send_result(self, step: steps.SendResult) -> None:  # noqa: ARG002
        self._actor.hold_results(False)

    async def _ask(self, step: steps.Ask) -> None:
        await self._within(self._actor.answer(step.text), step.timeout_s, "no answer")

    async def _lapse(self, step: steps.LapseTime) -> None:
        await self._actor.lapse(step.factor)

    async def _recover(self, step: steps.Recover) -> None:
        await self._within(self._actor.recover(), step.timeout_s, "neither recovered nor given up")

    async def _within(self, awaited: Coroutine[Any, Any, T], timeout_s: float, what: str) -> T:
        """A result, or ``Stuck`` after so much session time."""
        loop = asyncio.get_running_loop()
        result, patience = loop.create_task(awaited), loop.create_task(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({result, patience}, return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                raise Stuck(f"{what} within {timeout_s:g} s")
            return result.result()
        finally:
            result.cancel()
            patience.cancel()
            await asyncio.gather(result, patience, return_exceptions=True)


def offsets(step: steps.Resume) -> Iterator[float]:
    """When attempts begin, seconds from the step's begin."""
    yield from step.at
    if step.every_s is not None and step.until_s is not None:
        number, first = 1, step.at[-1] if step.at else -step.every_s
        while (offset := first + number * step.every_s) <= step.until_s:
            yield offset
            number += 1
