"""A scripted agent: a session whose answers are known, and that can hang up by itself."""

import asyncio
import itertools
from collections.abc import Mapping

from lab.host.machine.reasons import EndCause
from lab.host.protocol.messages import (
    AgentInfo,
    AgentState,
    AgentStateChanged,
    Answer,
    Ask,
    ChatHistory,
    ChatItem,
    ChatRole,
    FrameworkInfo,
    GetAgentInfo,
    GetChatHistory,
    GetFrameworkInfo,
    GetRtcStats,
    GetSessionState,
    GetSessionUsage,
    IoUpdated,
    ItemAdded,
    Ping,
    Pong,
    RtcStats,
    RunInput,
    RunResult,
    SessionState,
    SessionUsage,
    UpdateIo,
    UserState,
    said,
)
from lab.host.shell.session import BaseSession

NOT_UNDERSTOOD = "Sorry, I did not understand that."


class ScriptedAgent(BaseSession):
    """An agent that says what its script has for what it hears.

    Args:
        name: Of its session.
        room: Where it is.
        script: What it says to what; to anything else it says that it did not understand.
        hangs_up_after: What ends the call, from its side, once it has answered that.
    """

    def __init__(
        self, name: str, room: str, script: Mapping[str, str] | None = None, *, hangs_up_after: str | None = None
    ) -> None:
        super().__init__(name, room)
        self._script = script or {}
        self._hangs_up_after = hangs_up_after
        self._items: list[ChatItem] = []
        self._numbers = itertools.count(1)
        self._state = AgentState.LISTENING
        self.ready = asyncio.Event()
        """Cleared, a turn waits for it, as for a slow model."""
        self.ready.set()

    def end(self, cause: str, error: str | None = None) -> None:
        """See ``BaseSession``."""
        # What a closed session of the released version says of itself.
        self._state = AgentState.INITIALIZING
        super().end(cause, error)

    async def answer(self, ask: Ask) -> Answer:
        """See ``Session``."""
        match ask:
            case RunInput(text):
                return await self._turn(text)
            case Ping():
                return Pong()
            case GetChatHistory():
                return ChatHistory(tuple(self._items))
            case GetAgentInfo():
                return AgentInfo(self.name, "Follow the script.", chat_ctx=tuple(self._items))
            case GetSessionState():
                return SessionState(self._state, UserState.LISTENING, self.name)
            case GetRtcStats():
                return RtcStats()
            case GetSessionUsage():
                return SessionUsage()
            case GetFrameworkInfo():
                return FrameworkInfo("lab", "1")
            case UpdateIo():
                return IoUpdated()
            case _:
                raise ValueError(f"A session does not answer {type(ask).__name__}.")

    async def _turn(self, text: str) -> RunResult:
        if self.ending is not None:
            raise ValueError("The session is closed.")
        self._change(AgentState.THINKING)
        heard = self._add(ChatRole.USER, text)
        await self.ready.wait()
        self._change(AgentState.SPEAKING)
        answer = self._add(ChatRole.ASSISTANT, self._script.get(text, NOT_UNDERSTOOD))
        self._change(AgentState.LISTENING)
        if text == self._hangs_up_after:
            # Once the answer is on its way.
            asyncio.get_running_loop().call_soon(self.end, EndCause.TASK_COMPLETED)
        return RunResult((heard, answer))

    def _add(self, role: ChatRole, text: str) -> ChatItem:
        item = said(role, text, id=f"item-{next(self._numbers)}")
        self._items.append(item)
        self.tell(ItemAdded(item))
        return item

    def _change(self, state: AgentState) -> None:
        before, self._state = self._state, state
        self.tell(AgentStateChanged(before, state))
