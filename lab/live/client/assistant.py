"""The assistant: a user's side of a live session, with everything that it takes to survive a loss.

It does what a script says; what it does by itself is what every client must: answer calls once, watch its connection,
keep the transcript, and send a result when there is a connection to send it on.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from lab.live.client.asking import ask
from lab.live.client.bookings import Bookings
from lab.live.client.calls import Calls
from lab.live.client.connections import Connections
from lab.live.client.conversation import Conversation
from lab.live.client.events import Events
from lab.live.client.lapse import AHEAD_S, announce
from lab.live.client.lines import Line, Loss
from lab.live.client.link import Ears, Ending, Failed, Link, Phase
from lab.live.client.opening import setup_of
from lab.live.client.options import Options
from lab.live.client.recoverer import Recoverer
from lab.live.client.speaking import Voice
from lab.live.clock import Clock
from lab.live.protocol.messages import (
    ClientContent,
    ClientMessage,
    Content,
    Part,
    ServerMessage,
    SessionResumptionUpdate,
    Setup,
)
from lab.live.recovery.liveness import Watchdog
from lab.live.recovery.restore import history, update_note
from lab.live.timelapse import Lapse
from lab.live.voice.clips import Clip
from lab.programs.lateness import Lateness

NO_HANDLE = "the session has no handle"


class Assistant:
    """One user's side of one conversation.

    Args:
        options: What it is started with.
        dial: Makes a link.
        clips: Finds what to say by its name.
        clock: Session time.
        events: Where everything is told.
    """

    def __init__(
        self,
        options: Options,
        dial: Callable[[Ears], Link],
        clips: Callable[[str], Clip],
        clock: Clock,
        events: Events,
    ) -> None:
        self.clock, self.events = clock, events
        self._options = options
        self._clips = clips
        self.handle: str | None = None
        self._untold: Line | None = None
        """A line on which a history was sent, and nothing came back yet."""

        self._lost_t = self._silent_t = 0.0
        """When the latest loss was noticed, and when the lost line was heard last; session time."""

        self.connections = Connections(dial, lambda now: Watchdog(now=now), clock, events, self)
        self._recoverer = Recoverer(options.policy, self.connections, clock, events, self)
        self._bookings = Bookings(options.bookings, unique=options.unique)
        self.calls = Calls(options, self._bookings, clock, events, lambda: self.connections.live)
        self.calls.on_ended.append(self._tell_update)
        self._conversation = Conversation(clock, events)
        self._voice = Voice(clock, events, self._send, replay=options.replay)
        self._lapsed: Lateness | None = None
        """Looks at the event loop as long as session time is hurried."""

    # What a script makes it do.

    async def open(self, *, handle: str | None, transparent: bool, timeout_s: float) -> Line:
        """A first or new connection, used from now on."""
        setup = self.setup(handle, transparent=transparent)
        line = await self.connections.attempt(setup, timeout_s=timeout_s)
        self.use(line, resumed=handle is not None)
        if handle is None:
            self._voice.on_live()
        return line

    async def resume(self, timeout_s: float) -> Line:
        """One attempt with the handle; its connection is used from now on."""
        if self.handle is None:
            self.events.tell("failed", attempt=None, error=NO_HANDLE, took_s=0.0, phase=Phase.CONNECT.value)
            raise Failed(NO_HANDLE, Phase.CONNECT)
        line = await self.connections.attempt(self.setup(self.handle), timeout_s=timeout_s)
        self.use(line, resumed=True)
        return line

    async def say(self, clip: str) -> None:
        """Speak, or type the same words."""
        found = self._clips(clip)
        if self._options.text:
            self.type(found.text)
            self.events.tell("said", clip=found.name, text=found.text)
        else:
            await self._voice.say(found)

    def type(self, text: str, *, turn: bool = False) -> None:
        """Type."""
        self._conversation.typed(text)
        if not turn:
            self._voice.type(text)
        elif not self._send(ClientContent((Content("user", (Part(text=text),)),), turn_complete=True)):
            self.events.tell("not_sent", text=text)

    def drop(self, how: str) -> None:
        """End the connection in use."""
        line = self.connections.current
        if line is None:
            return
        self.events.tell("drop", how=how, attempt=line.number)
        was_live = line.live
        line.wanted_end = True
        if how == "abort":
            line.link.abort()
        else:
            line.link.close(1000)
        if was_live:
            line.lost = Loss(time.monotonic(), "drop")
            self.on_lost(line, line.lost)

    def close_old(self, code: int) -> None:
        """Close what was lost."""
        for line in self.connections.lost():
            self.connections.close(line, code)

    def reuse_old(self) -> None:
        """Use what was lost."""
        line = self.connections.current
        if line is not None and not line.live and line.link.ending is None:
            self.connections.reuse(line)
            self._live_again(resumed=True)

    def hold_results(self, hold: bool) -> None:
        """Keep results back, or no longer."""
        self.calls.hold = hold
        self.calls.flush()

    async def answer(self, text: str) -> None:
        """Ask, wait for the answer, judge it."""
        await ask(text, self.type, self._conversation, self.calls.backend, self.clock, self.events)

    async def lapse(self, factor: float) -> None:
        """Change session time's speed, here and on the server, and wait until it has changed."""
        self._tell_lapsed()
        lapse = Lapse(time.monotonic() + AHEAD_S, factor)
        if self._options.status is not None:
            await announce(self._options.status, lapse)
        self.clock.enter(lapse)
        self.events.tell("lapse", since=lapse.since, factor=factor, server=self._options.status is not None)
        await asyncio.sleep(lapse.since - time.monotonic())
        if factor > 1:
            self._lapsed = Lateness()
            self._lapsed.start()

    async def recover(self) -> None:
        """Recover by the policy; nothing where nothing is lost."""
        if self.connections.live is None:
            await self._recoverer.recover(self.handle, restored=self._untold is None)

    async def say_goodbye(self, patience_s: float = 1.0) -> None:
        """The close that the user wants: nothing is dialled after it.

        Args:
            patience_s: How long the server's answer is awaited, seconds of the wall.
        """
        awaits_answer = self.connections.live is not None
        self._recoverer.close()
        if awaits_answer:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self.events.wait_for("closed", after=len(self.events.log))

    def account(self) -> None:
        """Say the bookings and the ledger, and how well the watchdog kept its time."""
        self.calls.account()
        self._tell_lapsed()
        if self._voice.lost_s:
            self.events.tell("speech_lost", seconds=round(self._voice.lost_s, 3))
        lateness_s = sorted(self.connections.lateness_s)
        if lateness_s:
            p99_s, most_s = lateness_s[int(len(lateness_s) * 0.99)], lateness_s[-1]
            looks = len(lateness_s)
            self.events.tell("watchdog", looks=looks, late_p99_s=round(p99_s, 6), late_most_s=round(most_s, 6))

    def _tell_lapsed(self) -> None:
        """Of a lapse that ends: how late the machine was, which session time multiplies."""
        if self._lapsed is None:
            return
        self._lapsed.stop()
        late, self._lapsed = self._lapsed.figures(), None
        if late["looks"]:
            self.events.tell(
                "lapsed",
                factor=self.clock.factor,
                looks=late["looks"],
                late_p50_s=round(late["p50_s"] or 0.0, 6),
                late_most_s=round(late["max_s"] or 0.0, 6),
            )

    async def stop(self) -> None:
        """End everything; what is not committed never will be."""
        if self._lapsed is not None:
            self._lapsed.stop()
        await self._recoverer.stop()
        await self.calls.backend.stop()
        await self.connections.stop()
        self._bookings.close()

    # What the recovery policy makes it do.

    def setup(self, handle: str | None, *, transparent: bool = False) -> Setup:
        """The first message of a connection."""
        return setup_of(self._options.model, handle, transparent=transparent)

    def use(self, line: Line, *, resumed: bool) -> None:
        """Go on here."""
        first = self.connections.current is None
        self.connections.adopt(line)
        if not first:
            now = self.clock.now()
            since_lost_s, since_heard_s = round(now - self._lost_t, 6), round(now - self._silent_t, 6)
            event = "resumed" if resumed else "fallback"
            self.events.tell(event, attempt=line.number, since_lost_s=since_lost_s, since_heard_s=since_heard_s)
        if not resumed:
            self.handle, self._untold = None, None
        self._live_again(resumed=resumed)

    def restore(self, line: Line, *, note: bool) -> None:
        """Tell a new session what was said."""
        jobs = self.calls.ledger.effects(now=self.clock.now())
        line.link.send(history(self._conversation.transcript.turns, jobs, note=note))
        if note:
            self.calls.ledger.noted(jobs)
        self._untold = line
        self.events.tell("restored", attempt=line.number, note=note, jobs=len(jobs))
        self._voice.on_live()

    # What happens to it.

    def on_message(self, line: Line, message: ServerMessage) -> None:
        """A message came; what comes on a line that another one has followed concerns nobody any more."""
        if line is not self.connections.current:
            return
        if message.session_resumption_update is not None:
            self._on_handle(line, message.session_resumption_update)
        if message.tool_call is not None:
            self.calls.called(message.tool_call, line.number)
        if message.tool_call_cancellation is not None:
            self.calls.cancelled(message.tool_call_cancellation)
        if message.go_away is not None:
            self.events.tell("go_away", attempt=line.number, time_left_s=message.go_away.time_left_s)
        if message.server_content is not None:
            self._untold = None
            self._conversation.on_content(message.server_content, line.number)
            if message.server_content.turn_complete:
                self._tell_update()

    def on_lost(self, line: Line, loss: Loss) -> None:
        """The line in use is lost."""
        self._lost_t, self._silent_t = self.clock.session(loss.at), self.clock.session(line.heard_at)
        if loss.by == "drop":
            self._silent_t = self._lost_t
        self.calls.lost()
        self._conversation.lost(self._silent_t)
        self._voice.on_lost()

    def on_path_back(self, line: Line) -> None:
        """A lost line carries traffic again."""
        self._recoverer.path_back(line)

    def on_pong(self, line: Line, sent_at: float) -> None:
        """What was written before that ping has arrived."""
        if line is self.connections.live:
            self.calls.ledger.heard(self.clock.session(sent_at))
            self._voice.arrived(self.clock.session(sent_at))

    def on_ended(self, line: Line, ending: Ending) -> None:
        """A line is over."""
        self._recoverer.ended(line, ending)

    def _send(self, message: ClientMessage) -> bool:
        line = self.connections.live
        if line is None:
            return False
        line.link.send(message)
        return True

    def _live_again(self, *, resumed: bool) -> None:
        self.calls.ledger.adopted(resumed=resumed)
        self.calls.flush()
        if resumed:
            self._voice.on_live()

    def _on_handle(self, line: Line, told: SessionResumptionUpdate) -> None:
        self.events.tell("handle", handle=told.new_handle, resumable=told.resumable, attempt=line.number)
        if told.new_handle and told.resumable:
            self.handle = told.new_handle
        self._recoverer.issued(line, told.new_handle, resumable=told.resumable)

    def _tell_update(self) -> None:
        """Tell a restored session how a job ended, once the model is idle."""
        jobs = self.calls.ledger.updates()
        if jobs and not self._conversation.model_speaks and self._send(update_note(jobs)):
            self.calls.ledger.told(jobs, now=self.clock.now())
            self.events.tell("update_note", jobs=[job.key for job in jobs])
