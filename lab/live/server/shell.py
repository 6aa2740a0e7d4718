"""Between WebSockets and sessions: frames in, commands out, and every decision told."""

import contextlib
import itertools
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lab.live.clock import Clock
from lab.live.protocol import closing, paths, wire
from lab.live.protocol.errors import ProtocolError
from lab.live.protocol.paths import EndpointKind
from lab.live.server.framelog import FrameLog
from lab.live.server.line import Line
from lab.live.server.ticker import Ticker
from lab.live.session.commands import Close, Command, Note, Recognise, Send
from lab.live.session.house import House
from lab.live.session.states import Detach
from lab.live.timelapse import Lapse

AT_ONCE = 8
"""Sessions that are woken before the loop looks at its sockets again: where hundreds are to speak at the same instant,
the pongs of the others do not wait for all of them."""

Tell = Callable[..., None]
"""Tells an event by its name, with ``t`` in session seconds and what else there is; as ``lab.programs.report.say``."""


class Shell:
    """Does for a house of sessions what needs a socket, a clock or a file.

    Args:
        house: The sessions.
        clock: Session time.
        log: Where frames and notes go.
        recognise: Finds out what was said, and gives it to ``heard`` later.
        tell: Told every event.
    """

    def __init__(
        self, house: House, clock: Clock, log: FrameLog, recognise: Callable[[str, bytes], None], tell: Tell
    ) -> None:
        self.house = house
        self.clock = clock
        self.log = log
        self.lines: dict[int, Line] = {}
        """Open connections by their numbers."""
        self.ticker = Ticker(clock, house.next_at, self._wake)
        self.defects = 0
        """Errors of the server's own."""
        self._recognise = recognise
        self._say = tell
        self._numbers = itertools.count(1)
        self._mute = False

    @property
    def pong_delay_s(self) -> float:
        """Of the profile; on the wall, as a client's watchdog is."""
        return self.house.profile.pong_delay_s

    # What lines tell

    def opened(self, line: Line) -> None:
        """A WebSocket is open."""
        line.number, line.kind = next(self._numbers), kind_of(line)
        self.lines[line.number] = line
        self._tell("connected", {"connection": line.number, **_of(line)})
        self._do(self.house.opened(line.number, now=self.clock.now()))

    def received(self, line: Line, data: bytes) -> None:
        """A whole message came, whatever it is."""
        if line.number not in self.lines:
            return
        now = self.clock.now()
        try:
            message = wire.parse_client(data, kind=line.kind)
        except ProtocolError as error:
            wrong = error
            self.log.nonsense(line.number, data, error.reason, t=now)
            self._guarded(lambda: self.house.malformed(line.number, wrong, now=now), line)
            return
        if self.log.on:
            self.log.frame(line.number, "client", wire.encode(message), t=now)
        self._guarded(lambda: self.house.receive(line.number, message, now=now), line)

    def broken(self, line: Line, code: int, reason: str) -> None:
        """The client broke WebSocket's own rules."""
        self._tell("broken", {"connection": line.number, "code": code, "reason": reason})

    def ended(self, line: Line, how: Detach, detail: str) -> None:
        """A connection is over."""
        if self.lines.pop(line.number, None) is not None:
            self._guarded(lambda: self.house.detach(line.number, how, now=self.clock.now(), detail=detail))

    # What the status port and the recogniser tell

    def heard(self, session: str, text: str) -> None:
        """An utterance was understood."""
        self._guarded(lambda: self.house.heard(session, text, now=self.clock.now()))

    def late(self, by_s: float) -> None:
        """The event loop was this late."""
        self._tell("late", {"by_s": round(by_s, 3)})

    def lapse(self, lapse: Lapse) -> None:
        """Let session time run differently.

        Raises:
            ValueError: see ``TimeMap.enter``.
        """
        self.clock.enter(lapse)
        self._tell("lapse", {"since": lapse.since, "factor": lapse.factor})
        self._wake()

    def close(self, session: str, how: closing.Closing) -> None:
        """Close a session's connection.

        Raises:
            KeyError: there is no such session.
        """
        self._do(self.house.close(session, how, now=self.clock.now()))

    def dismiss(self, session: str) -> None:
        """End a session for good.

        Raises:
            KeyError: there is no such session.
        """
        self._do(self.house.dismiss(session, now=self.clock.now()))

    def _wake(self) -> None:
        self._guarded(lambda: self.house.wake(now=self.clock.now(), most=AT_ONCE))

    def _guarded(self, act: Callable[[], list[Command]], line: Line | None = None) -> None:
        """A defect is told, and costs the connection whose message met it, not the server: its timer goes on."""
        try:
            self._do(act())
        except Exception as error:  # noqa: BLE001 - whatever it is, the other sessions go on
            self.defects += 1
            traceback.print_exc(file=sys.stderr)
            number = None if line is None else line.number
            self._tell("defect", {"connection": number, "error": f"{type(error).__name__}: {error}"})
            if line is not None:
                line.hang_up(closing.INTERNAL_ERROR.code, closing.INTERNAL_ERROR.reason)
            self.ticker.set()

    def _do(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, Send):
                self._send(command)
            elif isinstance(command, Close):
                if (line := self.lines.get(command.connection)) is not None:
                    line.hang_up(command.code, closing.cut(command.reason))
            elif isinstance(command, Recognise):
                self._recognise(command.session_id, command.pcm)
            else:
                self._note(command)
        self.ticker.set()

    def _send(self, command: Send) -> None:
        line = self.lines.get(command.connection)
        if line is not None:
            payload = wire.encode(command.message)
            self.log.frame(command.connection, "server", payload, t=self.clock.now())
            line.transmit(payload)

    def _note(self, note: Note) -> None:
        self._tell(note.event.value, note.fields)

    def _tell(self, event: str, fields: Mapping[str, Any]) -> None:
        """To the log and to whoever listens; ``at`` of a note is session time, which is ``t`` here."""
        t = self.clock.now()
        rest = {name: value for name, value in fields.items() if name != "at"}
        self.log.note(event, rest, t=t)
        if not self._mute:
            try:
                self._say(event, t=t, **rest)
            except OSError as error:
                # Whoever read this is gone; the sessions are not.
                self._mute = True
                with contextlib.suppress(OSError):
                    sys.stderr.write(f"Standard output is gone: {error}\n")


def kind_of(line: Line) -> EndpointKind:
    """By which path its client came."""
    found = paths.find(line.request.path) if line.request is not None else None
    return found.kind if found is not None else EndpointKind.DEVELOPER


def _of(line: Line) -> dict[str, Any]:
    found = paths.find(line.request.path) if line.request is not None else None
    agents = line.request.headers.get_all("user-agent") if line.request is not None else []
    return {
        "remote": plain(line.remote_address),
        "local": plain(line.local_address),
        "tls": line.transport.get_extra_info("ssl_object") is not None,
        "path": None if found is None else found.kind.value,
        "version": None if found is None else found.version,
        "agent": " ".join(agents),
    }


def plain(address: Any) -> list[Any] | None:
    """An address and a port as clients write them, None where the connection is gone already."""
    return None if not address else [str(address[0]).removeprefix("::ffff:"), address[1]]
