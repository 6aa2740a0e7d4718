"""What a remote session does with what comes from its host: requests that wait, and a watchdog.

Every request ends once: answered, refused, timed out, or lost with the transport. A host that is silent is asked, and
given up when it does not answer; without a watchdog the kernel's give-up is all that ends a dead transport.
"""

import itertools
from dataclasses import dataclass

from lab.host.machine.commands import Audit, Dead, Emit, Note, Outcome, RemoteCommand, Send, Settle
from lab.host.protocol.errors import HostProtocolError
from lab.host.protocol.messages import Ask, ErrorTold, Event, Message, Ping, Request, Response, SessionClosed

TIMEOUT_S = 60.0
"""How long a request waits for its answer; livekit-agents 1.8.9."""

TRANSPORT_CLOSED = "remote session transport closed"


@dataclass(frozen=True, slots=True)
class Watch:
    """When a silent host is taken for lost."""

    ask_after_s: float
    """Of silence: then a ping is sent."""

    lost_after_s: float
    """Of further silence."""


class RemoteMachine:
    """The requests and the watchdog of one remote session.

    Args:
        now: The instant at which it begins, seconds.
        timeout_s: How long a request waits.
        watch: None for no watchdog, as in the released version.
    """

    def __init__(self, *, now: float, timeout_s: float = TIMEOUT_S, watch: Watch | None = None) -> None:
        self._timeout_s = timeout_s
        self._watch = watch
        self._numbers = itertools.count(1)
        self._open: dict[str, float] = {}
        """Requests that wait, and until when."""
        self._heard_at = now
        self._probe: str | None = None
        """The watchdog's ping that was not answered yet."""
        self._probe_at = now
        """When it went out, which is later than it was due where this side stood still."""
        self._lost: str | None = None
        self.closed: SessionClosed | None = None
        """What was told of the session's end; None again with the first event of the next session."""

    @property
    def waiting(self) -> frozenset[str]:
        """Requests that wait for an answer."""
        return frozenset(self._open)

    def request(self, ask: Ask, *, now: float, timeout_s: float | None = None) -> tuple[str, list[RemoteCommand]]:
        """Ask something: its id, and what is to be done. On a lost transport it is lost at once."""
        name = f"r{next(self._numbers)}"
        if self._lost is not None:
            return name, [Settle(name, Outcome.LOST, error=self._lost)]
        self._open[name] = now + (self._timeout_s if timeout_s is None else timeout_s)
        return name, [Send(Request(name, ask))]

    def receive(self, message: Message, *, now: float) -> list[RemoteCommand]:
        """Something came from the host."""
        self._heard_at = now
        if self._probe is not None and not (isinstance(message, Response) and message.request_id == self._probe):
            self._probe = None
        match message:
            case Event(body=None):
                return [Note(Audit.IGNORED, {"what": "an event of a later version"})]
            case Event(body=body):
                if not isinstance(body, ErrorTold):
                    # An error may be the host's own word, and says nothing of a session.
                    self.closed = body if isinstance(body, SessionClosed) else None
                return [Emit(message)]
            case Response():
                return self._answered(message)
            case _:
                return [Note(Audit.IGNORED, {"what": type(message).__name__})]

    def malformed(self, error: HostProtocolError) -> list[RemoteCommand]:
        """What came is no message; a fatal one ends the transport, by ``lost``."""
        return [Note(Audit.MALFORMED, {"error": str(error)})]

    def lost(self, why: str = TRANSPORT_CLOSED) -> list[RemoteCommand]:
        """The transport is gone: nobody waits any longer."""
        if self._lost is not None:
            return []
        self._lost = why
        waiting, self._open, self._probe = list(self._open), {}, None
        return [Settle(name, Outcome.LOST, error=why) for name in waiting]

    def unsent(self, request_id: str, why: str) -> list[RemoteCommand]:
        """A request did not go out; the transport stands."""
        gone = self._open.pop(request_id, None) is not None
        return [Settle(request_id, Outcome.LOST, error=why)] if gone else []

    def next_at(self) -> float | None:
        """When to wake it, None for not before something happens."""
        if self._lost is not None:
            return None
        instants = [*self._open.values()]
        if self._watch is not None:
            instants.append(self._watch_at(self._watch))
        return min(instants, default=None)

    def wake(self, *, now: float) -> list[RemoteCommand]:
        """Do what is due."""
        late = [name for name, until in self._open.items() if until <= now]
        commands: list[RemoteCommand] = []
        for name in late:
            del self._open[name]
            commands.append(Settle(name, Outcome.TIMED_OUT, error="no answer in time"))
        if self._lost is None and self._watch is not None and self._watch_at(self._watch) <= now:
            commands += self._probe_or_bury(now)
        return commands

    def _probe_or_bury(self, now: float) -> list[RemoteCommand]:
        if self._probe is None:
            self._probe, self._probe_at = f"w{next(self._numbers)}", now
            return [Send(Request(self._probe, Ping()))]
        silent_s = now - self._heard_at
        return [*self.lost(f"nothing came for {silent_s:.1f} s"), Dead(silent_s)]

    def _watch_at(self, watch: Watch) -> float:
        return self._heard_at + watch.ask_after_s if self._probe is None else self._probe_at + watch.lost_after_s

    def _answered(self, response: Response) -> list[RemoteCommand]:
        name = response.request_id
        if name == self._probe:
            # An error says as much as a pong: somebody is there.
            self._probe = None
            return []
        if self._open.pop(name, None) is None:
            # A watchdog's ping whose answer came after something else had shown life is not told as a mistake.
            return [] if name.startswith("w") else [Note(Audit.UNASKED, {"request": name})]
        if response.error is not None:
            return [Settle(name, Outcome.REFUSED, error=response.error)]
        return [Settle(name, Outcome.ANSWERED, response.answer)]
