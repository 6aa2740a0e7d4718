"""Recover from a silent loss with the lab's policy, on top of google-genai as it comes.

PYTHONPATH leads to the lab; what is used of it is pure: no sockets, no clock. The SDK's own pings are off, since they
need half a minute, and its queue has no limit, so that a full one never looks like a dead path. Whoever runs it cuts
the flow of the first connection when it says ``tool_call``, for good.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from conversation import BOOKED, QUESTION, REQUEST, Conversation, connected, say
from google.genai import errors, types
from websockets.exceptions import WebSocketException

from lab.live.protocol.messages import FunctionCall, FunctionResponse
from lab.live.recovery.commands import Abandon, Adopt, CloseOld, Command, Dial, GiveUp, Report, Restore
from lab.live.recovery.ledger import Job, Ledger
from lab.live.recovery.liveness import Watchdog
from lab.live.recovery.policy import Recovery
from lab.live.recovery.restore import history
from lab.live.recovery.transcript import Transcript

COMMIT_S = 4.0
"""From the call to the booking (study)."""

ABNORMAL = 1006
"""What the SDK makes of a connection that ended without a close frame."""

OPTIONS = {"ping_interval": None, "max_queue": None, "close_timeout": None}

now = time.monotonic


class Attempt:
    """One connection, from its dial to its end; tells what happens as functions of the assistant to be called."""

    def __init__(self, number: int, handle: str | None, assistant: "Assistant") -> None:
        self.number = number
        self.talk: Conversation | None = None
        self._assistant = assistant
        self._task = asyncio.create_task(self._run(handle))
        self._others: list[asyncio.Task[None]] = []

    def close(self) -> None:
        """Queue a close, and wait for its answer in the background."""
        assert self.talk is not None
        self._others.append(asyncio.create_task(self.talk.session.close()))

    def abandon(self) -> None:
        """End an attempt that nobody waits for."""
        self._task.cancel()

    def abort(self) -> None:
        """End it whatever its path is."""
        if self.talk is not None:
            self.talk.session._ws.transport.abort()
        for task in (*self._others, self._task):
            task.cancel()

    def _tell(self, what: Callable[[], Sequence[Command]]) -> None:
        self._assistant.inbox.put_nowait(what)

    async def _run(self, handle: str | None) -> None:
        me, to = self.number, self._assistant
        try:
            async with connected(handle, **OPTIONS) as self.talk:
                self._tell(lambda: to.ready(me))
                watchdog = Watchdog(now=now())
                self._others.append(asyncio.create_task(self._watch(watchdog)))
                while True:
                    async for message in self.talk.session.receive():
                        watchdog.frame(now=now())
                        events = list(self.talk.told_in(message))
                        self._tell(lambda events=events: to.said(me, events))  # type: ignore[misc]
        except errors.APIError as error:
            code, reason = error.code, str(error.details)
            self._tell(lambda: to.ended(me, code, reason))
        except (OSError, TypeError, WebSocketException) as error:
            why = repr(error)
            self._tell(lambda: to.ended(me, None, why))

    async def _watch(self, watchdog: Watchdog) -> None:
        assert self.talk is not None
        me, to, loss = self.number, self._assistant, None
        with contextlib.suppress(WebSocketException):
            while loss is None:
                if watchdog.ping_due(now=now()):
                    sent_at = now()
                    pong = await self.talk.session._ws.ping()
                    pong.add_done_callback(partial(self._pong, watchdog, sent_at))
                    watchdog.pinged(now=now())
                loss = watchdog.lost(now=now())
                await asyncio.sleep(max(0.0, watchdog.next_at() - now()))
            silent_s = loss.silent_s
            self._tell(lambda: to.lost(me, silent_s))

    def _pong(self, watchdog: Watchdog, sent_at: float, pong: "asyncio.Future[float]") -> None:
        if pong.cancelled() or pong.exception() is not None:
            return
        watchdog.pong(sent_at, now=now())
        self._tell(lambda: self._assistant.pong(self.number, sent_at))


class Assistant:
    """The conversation, whatever it runs on."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[Callable[[], Sequence[Command]]] = asyncio.Queue()
        self.recovery, self.ledger, self.transcript = Recovery(), Ledger(), Transcript()
        self.bookings: list[str] = []
        self.attempts = {0: Attempt(0, None, self)}
        self._sending: list[asyncio.Task[Any]] = []
        self._turns_since_restore: int | None = None
        self._done = False

    async def run(self) -> None:
        """Until the user has been answered, or told that nothing works."""
        while not self._done:
            at = self.recovery.next_at()
            try:
                what = await asyncio.wait_for(self.inbox.get(), None if at is None else max(0.0, at - now()))
            except TimeoutError:
                commands: Sequence[Command] = self.recovery.wake(now=now())
            else:
                commands = what()
            for command in commands:
                self._obey(command)
        say("bookings", count=len(self.bookings))
        for attempt in self.attempts.values():
            attempt.abort()

    def ready(self, number: int) -> Sequence[Command]:
        """A connection's setup was answered."""
        talk = self.attempts[number].talk
        assert talk is not None
        if number == 0:
            self.recovery.issued(talk.handle)
            self.transcript.user(REQUEST)
            self._send(talk.session.send_realtime_input(text=REQUEST))
            return []
        commands = self.recovery.ready(number, now=now())
        self.recovery.issued(talk.handle, attempt=number)
        return commands

    def said(self, number: int, events: list[tuple[str, dict[str, Any]]]) -> Sequence[Command]:
        """What the server said, from the connection that the conversation runs on."""
        for name, detail in events if number == self.recovery.connection else []:
            if name == "tool_call":
                self._called(detail)
            elif name == "turn":
                self._turn(detail["said"])
        return []

    def pong(self, number: int, sent_at: float) -> Sequence[Command]:
        """A ping was answered."""
        if number == self.recovery.connection:
            self.ledger.heard(sent_at)
            return []
        return self.recovery.path_back(now=now(), attempt=number)

    def lost(self, number: int, silent_s: float | None) -> Sequence[Command]:
        """A connection that was ready is silent, or gone."""
        if number != self.recovery.connection:
            return []
        self.transcript.lost()
        self.ledger.lost()
        say("silent", silent_s=silent_s)
        return self.recovery.lost(now=now(), attempt=number, gone=silent_s is None)

    def ended(self, number: int, code: int | None, why: str) -> Sequence[Command]:
        """A connection is over."""
        if self.attempts[number].talk is not None:
            return [*self.lost(number, None), *self.recovery.old_closed(now=now(), attempt=number, echoed=False)]
        if number == 0:
            raise ConnectionError(f"the first connection: {code} {why}")
        if code in (None, ABNORMAL):
            return self.recovery.failed(number, why, now=now())
        return self.recovery.refused(number, code, why, now=now())

    def _called(self, call: dict[str, Any]) -> None:
        job = self.ledger.called(FunctionCall(call["id"], call["name"], call["args"]), now=now())
        if job is not None:
            self._send(self._commit(job))

    async def _commit(self, job: Job) -> None:
        await asyncio.sleep(COMMIT_S)
        self.bookings.append(job.key)
        say("committed", key=job.key)
        self.ledger.finished(job.number, BOOKED, now=now())
        self._respond()

    def _respond(self) -> None:
        responses = [_as_sdk(response) for response in self.ledger.take(now=now())]
        if responses:
            self._send(self._session().send_tool_response(function_responses=responses))

    def _turn(self, said: str) -> None:
        self.transcript.model(said)
        self.transcript.complete()
        if self._turns_since_restore is None:
            return
        self._turns_since_restore += 1
        if self._turns_since_restore == 1:
            turn = {"role": "user", "parts": [{"text": QUESTION}]}
            self._send(self._session().send_client_content(turns=turn, turn_complete=True))
        else:
            say("answer", text=said)
            self._done = True

    def _obey(self, command: Command) -> None:
        match command:
            case Dial(attempt, handle):
                self.attempts[attempt] = Attempt(attempt, handle, self)
            case Abandon(attempt):
                self.attempts[attempt].abandon()
            case CloseOld(attempt):
                self.attempts[attempt].close()
            case Adopt(_, resumed):
                self.ledger.adopted(resumed=resumed)
                self._respond()
            case Restore(_, note):
                self._restore(note=note)
            case Report(event, fields):
                say(event.value, **fields)
            case GiveUp(reason):
                say("given_up_for", reason=reason)
                self._done = True

    def _restore(self, *, note: bool) -> None:
        jobs = self.ledger.effects(now=now())
        content = history(self.transcript.turns, jobs, note=note)
        turns = [{"role": turn.role, "parts": [{"text": part.text} for part in turn.parts]} for turn in content.turns]
        self._send(self._session().send_client_content(turns=turns, turn_complete=content.turn_complete))
        self.ledger.noted(jobs)
        self._turns_since_restore = 0
        say("restored", turns=len(turns))

    def _session(self) -> Any:
        talk = self.attempts[self.recovery.connection or 0].talk
        assert talk is not None
        return talk.session

    def _send(self, what: Any) -> None:
        self._sending.append(asyncio.create_task(what))


def _as_sdk(response: FunctionResponse) -> Any:
    return types.FunctionResponse(id=response.id, name=response.name, response=response.response)


async def main() -> None:
    """One booking, one loss, one recovery."""
    await Assistant().run()
    say("done")


asyncio.run(main())
