"""A remote session on its transport: requests, events, and how it ended."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from lab.host.machine.commands import Dead, Emit, Note, Notes, Outcome, RemoteCommand, Send, Settle, unwritten
from lab.host.machine.remote import TIMEOUT_S, TRANSPORT_CLOSED, RemoteMachine, Watch
from lab.host.protocol.errors import FrameTooLong, HostProtocolError, Unsayable
from lab.host.protocol.messages import (
    AgentInfo,
    Answer,
    Ask,
    ChatHistory,
    EventBody,
    Finalized,
    FinalizeSimulation,
    GetAgentInfo,
    GetChatHistory,
    GetSessionState,
    Message,
    Ping,
    Pong,
    Request,
    RunInput,
    RunResult,
    SessionClosed,
    SessionState,
    Verdict,
)
from lab.host.shell.alarm import Alarm
from lab.host.shell.failures import NotTold, RequestFailed
from lab.host.shell.tasks import Tasks
from lab.host.shell.transport import Transport, TransportClosed, Undeliverable

Wanted = TypeVar("Wanted")

CLOSE_S = 3.0
"""How long a close may wait for a path that takes nothing; as long as a host drains."""


class RemoteSession:
    """What talks to a host from afar.

    Args:
        transport: Its own.
        timeout_s: How long a request waits for its answer.
        watch: When a silent host is given up; None leaves that to the kernel, as the released version does.
        note: Takes what is to be written down.

    Raises:
        UsageError: the transport is somebody's already.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout_s: float = TIMEOUT_S,
        watch: Watch | None = None,
        note: Notes = unwritten,
    ) -> None:
        transport.claim("a remote")
        self._transport = transport
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._machine = RemoteMachine(now=self._loop.time(), timeout_s=timeout_s, watch=watch)
        self._waiting: dict[str, asyncio.Future[Answer | None]] = {}
        self._events: asyncio.Queue[EventBody | None] = asyncio.Queue()
        self._told: asyncio.Future[SessionClosed] = self._loop.create_future()
        """Of the end of the session that there is, or that was the last one."""
        self._ended = asyncio.Event()
        self.ended_by: str | None = None
        """How the transport ended; None while it stands."""
        self._alarm = Alarm(lambda: self._do(self._machine.wake(now=self._loop.time())))
        self._reading = Tasks().start(self._read())
        self._alarm.set(self._machine.next_at())

    @property
    def closed(self) -> SessionClosed | None:
        """What was told of the session's end; None where the next one has begun."""
        return self._machine.closed

    async def request(self, ask: Ask, *, timeout_s: float | None = None) -> Answer | None:
        """Ask something, and wait for the answer.

        Raises:
            RequestFailed: there is none; at once where the transport is gone.
            FrameTooLong: it is longer than a message may be.
            Unsayable: it is no question of the set.
        """
        name, commands = self._machine.request(ask, now=self._loop.time(), timeout_s=timeout_s)
        future: asyncio.Future[Answer | None] = self._loop.create_future()
        self._waiting[name] = future
        try:
            self._do(commands)
            return await future
        finally:
            self._waiting.pop(name, None)

    async def ping(self) -> Pong:
        """Whether a session is there."""
        return await self._expect(Ping(), Pong)

    async def run_input(self, text: str) -> RunResult:
        """Say something as the user, and wait for what that adds."""
        return await self._expect(RunInput(text), RunResult)

    async def chat_history(self) -> ChatHistory:
        """What was said so far."""
        return await self._expect(GetChatHistory(), ChatHistory)

    async def session_state(self) -> SessionState:
        """What agent and user do."""
        return await self._expect(GetSessionState(), SessionState)

    async def agent_info(self) -> AgentInfo:
        """Who the agent is."""
        return await self._expect(GetAgentInfo(), AgentInfo)

    async def finalize_simulation(self, provisional: Verdict, *, timeout_s: float | None = None) -> Verdict | None:
        """End the simulation; gives the user's verdict, None where the user has none."""
        ask = FinalizeSimulation(provisional.success, provisional.reason)
        return (await self._expect(ask, Finalized, timeout_s)).user_verdict

    async def events(self) -> AsyncIterator[EventBody]:
        """What happens in the session, in order; ends with the transport."""
        while (body := await self._events.get()) is not None:
            yield body
        self._events.put_nowait(None)

    async def wait_told(self) -> SessionClosed:
        """Wait until the session's end is told; of one that has ended, and that no other one has followed, at once.

        Raises:
            NotTold: the transport has ended without that, so that it comes no more.
        """
        return await asyncio.shield(self._told)

    async def wait_ended(self) -> str:
        """Wait for the transport's end; gives how."""
        await self._ended.wait()
        return self.ended_by or ""

    async def close(self) -> None:
        """End the transport; who waits for an answer is told."""
        self._lost("closed here")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._transport.close()
        except TimeoutError:
            self._transport.abort()

    async def _expect(self, ask: Ask, kind: type[Wanted], timeout_s: float | None = None) -> Wanted:
        answer = await self.request(ask, timeout_s=timeout_s)
        if not isinstance(answer, kind):
            raise RequestFailed(Outcome.REFUSED, f"the host answered {type(ask).__name__} with {answer}")
        return answer

    async def _read(self) -> None:
        while self.ended_by is None:
            try:
                await self._read_one()
            except TransportClosed as gone:
                self._lost(TRANSPORT_CLOSED, str(gone))
            except Exception as defect:
                self._give_up(f"a defect: {str(defect) or type(defect).__name__}")
                raise

    async def _read_one(self) -> None:
        try:
            message = await self._transport.receive()
        except HostProtocolError as error:
            self._do(self._machine.malformed(error))
            if error.fatal:
                self._give_up(str(error))
        else:
            self._do(self._machine.receive(message, now=self._loop.time()))

    def _lost(self, why: str, cause: str = "") -> None:
        """Tell who waits why, and keep the cause: the kernel's word, where it has one."""
        if self.ended_by is not None:
            return
        self.ended_by = cause or why
        self._do(self._machine.lost(why))
        self._alarm.stop()
        self._events.put_nowait(None)
        if not self._told.done():
            self._told.set_exception(NotTold(self.ended_by))
            self._told.exception()  # Whoever waits hears of it, and it may be that nobody does.
        self._ended.set()

    def _give_up(self, why: str) -> None:
        self._lost(why)
        if self._reading is not asyncio.current_task():
            self._reading.cancel()
        self._transport.abort()

    def _do(self, commands: list[RemoteCommand]) -> None:
        for command in commands:
            match command:
                case Send(message):
                    self._send(message)
                case Settle():
                    self._settle(command)
                case Emit(event):
                    assert event.body is not None
                    self._events.put_nowait(event.body)
                    self._tell_closed()
                case Dead(silent_s):
                    self._give_up(f"nothing came for {silent_s:.1f} s")
                case Note():
                    self._note(command)
        if self.ended_by is None:
            self._alarm.set(self._machine.next_at())

    def _tell_closed(self) -> None:
        closed = self._machine.closed
        if self._told.done() and not self._told.exception() and self._told.result() is not closed:
            self._told = self._loop.create_future()
        if closed is not None and not self._told.done():
            self._told.set_result(closed)

    def _send(self, message: Message) -> None:
        try:
            self._transport.put(message)
        except (FrameTooLong, Unsayable):
            # Whoever asked is told by the exception itself.
            self._unsent(message, "")
            raise
        except TransportClosed as gone:
            self._lost(TRANSPORT_CLOSED, str(gone))
        except Undeliverable as error:
            self._do(self._unsent(message, str(error)))

    def _unsent(self, message: Message, why: str) -> list[RemoteCommand]:
        return self._machine.unsent(message.request_id, why) if isinstance(message, Request) else []

    def _settle(self, command: Settle) -> None:
        future = self._waiting.get(command.request_id)
        if future is None or future.done():
            return
        if command.outcome is Outcome.ANSWERED:
            future.set_result(command.answer)
        else:
            future.set_exception(RequestFailed(command.outcome, command.error))
