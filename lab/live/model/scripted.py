"""The scripted model: what one does when, by its manner and by what it was told.

Turns wait in a queue and begin one after another, at instants that are fixed when they are asked for: how often or how
late somebody calls ``wake`` changes nothing in what comes out. A turn on its way is a line of messages with the
instants at which they are due.

::

    prompt, history, respond --> queue of turns --> line of messages --> wake
                                                     ^ interrupt: cleared, and says so
                                                     ^ cut_off: stopped; resumed: its rest comes first
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from lab.live.model import saying
from lab.live.model.belief import Belief, Status, is_note, told
from lab.live.model.hearing import Intent, Request, understand
from lab.live.model.manner import Manner, Range
from lab.live.model.recall import last_note, last_report, open_request
from lab.live.model.turns import Announce, Reply, Say, Timed, Turn, complete, interruption, sentence, tokens
from lab.live.model.utterance import Utterance, utter
from lab.live.protocol.messages import (
    Content,
    FunctionCall,
    FunctionResponse,
    Json,
    ServerMessage,
    ToolCall,
    ToolCallCancellation,
)

TOOL = "book_slot"
"""The one tool that it knows how to call."""


class ScriptedModel:
    """One session's model.

    Args:
        manner: How fast it answers and speaks.
        tools: Names of the tools that the setup declared.
        uniform: Gives a number between two, both possible; the only chance in it.
        call_id: Gives an id that no call had before.
    """

    def __init__(
        self,
        manner: Manner,
        tools: Collection[str],
        uniform: Callable[[float, float], float],
        call_id: Callable[[], str],
    ) -> None:
        self._manner = manner
        self._tools = frozenset(tools)
        self._uniform = uniform
        self._call_id = call_id
        self._queue: deque[Turn] = deque()
        self._line: deque[Timed] = deque()
        self._free_at = float("-inf")
        self._utterance: tuple[float, Utterance] | None = None
        self._cut: str | None = None
        self._away = False
        self._pending: dict[str, FunctionCall] = {}
        self._belief = Belief()
        self._prompt_tokens = 0

    @property
    def speaking(self) -> bool:
        """Whether a turn's audio has begun and is not played yet; as of the last call of any method."""
        return self._utterance is not None

    @property
    def idle(self) -> bool:
        """Whether it has nothing to say or do; calls may be pending."""
        return not self._queue and not self._line

    @property
    def pending(self) -> Mapping[str, FunctionCall]:
        """Calls that await a response, by id."""
        return MappingProxyType(self._pending)

    @property
    def belief(self) -> Belief:
        """How it thinks that the booking stands."""
        return self._belief

    def next_at(self) -> float | None:
        """When to call ``wake`` next, session seconds; None while there is nothing to wait for."""
        if self._away:
            return None
        if self._line:
            return self._line[0][0]
        return max(self._queue[0].at, self._free_at) if self._queue else None

    def wake(self, *, now: float) -> list[ServerMessage]:
        """All that is due by now, in order."""
        due: list[ServerMessage] = []
        while (at := self.next_at()) is not None and at <= now:
            if not self._line:
                self._begin(self._queue.popleft(), at)
            while self._line and self._line[0][0] <= now:
                self._free_at, message = self._line.popleft()
                due.append(message)
            if not self._line:
                self._utterance = None
        return due

    def prompt(self, text: str, *, now: float) -> None:
        """A user's turn is complete; while the model speaks it interrupts.

        Args:
            text: Typed, or recognised; without a word in it there was nothing to answer.
            now: Session seconds.
        """
        if not text.strip():
            return
        self.interrupt(now=now)
        self._prompt_tokens += len(text.split())
        self._reply(understand(text), self._manner.reply_s, now)

    def history(self, turns: Sequence[Content], *, now: float, answer: bool) -> None:
        """Turns of text were put before the model.

        Args:
            turns: Oldest first; a restored session's, or a typed one.
            now: Session seconds.
            answer: Whether the model is to answer now.
        """
        self._prompt_tokens += sum(len(turn.text.split()) for turn in turns)
        note = last_note(turns)
        self._belief = note or last_report(turns) or self._belief
        if not answer or not turns:
            return
        self.interrupt(now=now)
        restored = self._manner.restored_reply_s
        request = open_request(turns)
        if note is not None and is_note(turns[-1].text):
            self._queue.append(Announce(self._after(restored, now), note))
        elif request is not None and self._callable(request):
            self._queue.append(Reply(self._after(self._manner.reissue_s, now), request))
            self._queue.append(Say(self._after(restored, now), saying.booking(Belief(slot=request.slot))))
        elif turns[-1].role == "model" or is_note(turns[-1].text):
            self._queue.append(Say(self._after(restored, now), saying.LISTENING))
        else:
            typed = len(turns) == 1
            self._reply(understand(turns[-1].text), self._manner.reply_s if typed else restored, now)

    def respond(self, responses: Sequence[FunctionResponse], *, now: float) -> tuple[str, ...]:
        """Tools have answered.

        Args:
            responses: By the ids of pending calls; one without an id answers the only pending call of its tool.
            now: Session seconds.

        Returns:
            Ids, or names where there is no id, that no pending call has; these tell the model nothing.
        """
        unknown = []
        for response in responses:
            call = self._asked(response)
            if call is None:
                unknown.append(response.id or response.name)
                continue
            self._belief = told(_slot(call), response.response)
            self._announce(str(response.extra.get("scheduling")), now)
        return tuple(unknown)

    def interrupt(self, *, now: float) -> None:
        """The user speaks: what the model was saying ends, and pending calls with it; nothing if it was silent."""
        if self._utterance is None:
            return
        _, utterance = self._utterance
        self._line.clear()
        self._utterance = None
        self._line.append((now, interruption()))
        if self._pending:
            self._line.append((now, ServerMessage(tool_call_cancellation=ToolCallCancellation(tuple(self._pending)))))
            self._pending.clear()
            if self._belief.status is Status.CALLED:
                self._belief = Belief(Status.CANCELLED, self._belief.slot)
        self._line.append((now, complete(tokens(self._prompt_tokens, utterance.duration_s))))

    def cut_off(self, *, now: float) -> None:
        """The connection is gone: nothing comes until ``resumed``; a sentence stops where its listener was."""
        self._away = True
        if self._utterance is not None:
            begun_at, utterance = self._utterance
            self._cut = utterance.rest(now - begun_at)
            self._line.clear()
            self._utterance = None
            self._free_at = now

    def resumed(self, *, now: float) -> None:
        """A connection is there again; a sentence that was cut off may be taken up where it stopped."""
        self._away = False
        self._free_at = max(self._free_at, now)
        if self._cut and self._uniform(0.0, 1.0) < self._manner.redo_share:
            self._queue.appendleft(Say(self._after(self._manner.redo_s, now), self._cut))
        self._cut = None

    def _begin(self, turn: Turn, at: float) -> None:
        """Make a turn's line of messages."""
        match turn:
            case Reply(request=request) if self._callable(request):
                self._call(request, at)
            case Reply(request=request):
                self._speak(self._answer(request), at)
            case Announce(belief=belief):
                self._speak(saying.announcement(belief), at)
            case Say(text=text):
                self._speak(text, at)

    def _call(self, request: Request, at: float) -> None:
        call = FunctionCall(self._call_id(), TOOL, {"slot": request.slot})
        self._pending[str(call.id)] = call
        self._belief = Belief(Status.CALLED, request.slot)
        self._line.append((at, ServerMessage(tool_call=ToolCall((call,)))))

    def _speak(self, text: str, at: float) -> None:
        manner = self._manner
        utterance = utter(text, words_per_s=manner.words_per_s, chunk_s=manner.chunk_s)
        usage = tokens(self._prompt_tokens, utterance.duration_s)
        line = sentence(utterance, at=at, manner=manner, usage=usage)
        self._line.extend(line)
        self._utterance = (at, utterance)

    def _answer(self, request: Request) -> str:
        match request.intent:
            case Intent.ASKED:
                self._queue = deque(turn for turn in self._queue if not isinstance(turn, Announce))
                return saying.answer(self._belief)
            case Intent.BOOK:
                return saying.NO_TOOL if TOOL not in self._tools else saying.answer(self._belief)
            case Intent.CANCEL:
                return saying.cancelling(self._belief)
            case _:
                return saying.PLAIN[request.intent]

    def _callable(self, request: Request) -> bool:
        """Whether to call the tool: not for the slot that it holds to be booked, or about to be."""
        if request.intent is not Intent.BOOK or TOOL not in self._tools:
            return False
        known = self._belief.status in (Status.CALLED, Status.PROCESSING, Status.BOOKED)
        return not (known and self._belief.slot == request.slot)

    def _reply(self, request: Request, reply_s: Range, now: float) -> None:
        within = self._manner.call_s if self._callable(request) else reply_s
        self._queue.append(Reply(self._after(within, now), request))

    def _announce(self, scheduling: str, now: float) -> None:
        """Tell of a response, by the ``scheduling`` that came with it."""
        if scheduling == "SILENT":
            return
        if scheduling == "INTERRUPT":
            self.interrupt(now=now)
        self._queue.append(Announce(self._after(self._manner.announce_s, now), self._belief))

    def _asked(self, response: FunctionResponse) -> FunctionCall | None:
        """The pending call that a response answers; no longer pending, unless more is to follow."""
        named = [call_id for call_id, call in self._pending.items() if call.name == response.name]
        call_id = response.id or (named[0] if len(named) == 1 else "")
        if response.extra.get("willContinue") is True:
            return self._pending.get(call_id)
        return self._pending.pop(call_id, None)

    def _after(self, within: Range, now: float) -> float:
        return now + self._uniform(*within)


def declared(tools: Iterable[Json]) -> frozenset[str]:
    """Names of the functions that a setup declares.

    Args:
        tools: As they stood in it.
    """
    lists = [tool.get(key) for tool in tools for key in ("functionDeclarations", "function_declarations")]
    functions = chain.from_iterable(names for names in lists if isinstance(names, list | tuple))
    found = [function.get("name") for function in functions if isinstance(function, Mapping)]
    return frozenset(name for name in found if isinstance(name, str))


def _slot(call: FunctionCall) -> str | None:
    slot = call.args.get("slot")
    return slot if isinstance(slot, str) else None
