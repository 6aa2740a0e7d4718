"""The close race: a close of our own against the receive that fails at it, and a server that may close as well.

Prediction: the lab's socket keeps the first end in every order, so that the reader is told that one, and later sends
raise it. As published, the failing receive records its own end over the first in every order, and where it also
finishes the stream first the reader gets an unexpected closure in place of a normal end.

Source: firebase-ios-sdk pull request 17045, where the race was found by reading alone.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from lab.live.lifecycle.endings import ABNORMAL, ClosedByServer, ClosedHere, Closure, Party, SessionError, WireEnded
from lab.live.lifecycle.socket import LiveSocket
from lab.live.lifecycle.variant import VARIANTS, Variant
from lab.study.lifecycle import session_race
from lab.study.lifecycle.interleaving import Choose, Point, Program, begin_with, every_order, interleave, prefer
from lab.study.lifecycle.session_race import Ends

RUNS = 10_000
CLOSE, RECEIVE, SERVER = "close", "receive", "server"

CLOSE_FIRST, RECEIVE_FIRST = "the close finishes first", "the receive finishes first"
CLOSE_FIRST_SESSION = "the close finishes first, a whole session"
RECEIVE_FIRST_SESSION = "the receive finishes first, a whole session"
EVERY, EVERY_WITH_SERVER, AT_RANDOM = "every order", "every order, the server closes too", "at random"
ORDERS = (
    *(CLOSE_FIRST, RECEIVE_FIRST, CLOSE_FIRST_SESSION, RECEIVE_FIRST_SESSION),
    *(EVERY, EVERY_WITH_SERVER, AT_RANDOM),
)

_OWN_CODES = (ABNORMAL, 1000, 1001)
"""What a wire may call its end when it is cancelled: nothing came, or the server answered with the one or the other."""

_SERVER_CODES = (1000, 1001, 1008, 1011)


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One order, or many."""

    variant: str
    order: str
    runs: int
    reader_right: int
    """Runs in which the reader came to the first end: a normal one, without an error, where that was ours."""

    recorded_first: int
    """Runs in which the recorded end is the first one."""

    sends_right: int
    """Runs in which a later send raised the first end."""

    ok: bool
    """All of them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    steps: tuple[str, ...]
    reader_right: bool
    recorded_first: bool
    sends_right: bool


class RacingWire:
    """A wire without a network: its receive waits until it is cancelled or the server closes.

    Args:
        own_code: What it says of its end at a cancel.
        server_code: What the server will close with; None if it never does.
    """

    def __init__(self, own_code: int, server_code: int | None) -> None:
        self.first: Closure | None = None
        """The end that came first, by the wire's own account."""
        self._own = Closure(Party.US, own_code)
        self._server = None if server_code is None else Closure(Party.SERVER, server_code)
        self._server_closed = self._cancelled = False

    async def server_closes(self) -> None:
        """Let the server's close arrive."""
        self._server_closed = True

    async def open(self) -> None:
        """Is open."""

    async def receive(self) -> str | bytes:
        """End as the first of the two says; a cancel that comes while a close lies unread hides it."""
        await Point(lambda: self._cancelled or self._server_closed)
        end = self._own if self._cancelled or self._server is None else self._server
        self.first = self.first or end
        raise WireEnded(end)

    async def send(self, data: bytes) -> None:
        """Lead nowhere."""

    async def cancel(self, code: int, reason: str) -> None:
        """End, and give way as a close that awaits its answer does."""
        self.first = self.first or Closure(Party.US, code, reason)
        self._cancelled = True
        await Point()

    def leave(self, code: int, reason: str) -> None:
        """Lead nowhere."""


def once(variant: Variant, choose: Choose, *, own_code: int = ABNORMAL, server_code: int | None = None) -> Outcome:
    """Run the race in one order; the receive is pending when it begins."""
    wire = RacingWire(own_code, server_code)
    socket = LiveSocket(wire, variant)
    programs: dict[str, Program] = {CLOSE: socket.close(), RECEIVE: socket.receive()}
    if server_code is not None:
        programs[SERVER] = wire.server_closes()
    steps = interleave(programs, begin_with(RECEIVE, choose))
    first = wire.first
    assert first is not None
    return Outcome(steps, _read_right(socket, first), socket.recorded == first, _sent_right(socket, first))


def rows(variants: Iterable[Variant] = VARIANTS.values(), *, runs: int = RUNS, seed: int = 1) -> list[RaceRow]:
    """The table: both orders forced, every order that there is, and many at random; for a thread without an event loop.

    The two forced orders are run at the socket and through a whole session, the others at the socket.

    Args:
        variants: Whose sockets race.
        runs: How many at random.
        seed: Of the random ones.
    """
    found = []
    for variant in variants:
        found += [
            _row(variant, CLOSE_FIRST, [once(variant, prefer(CLOSE))]),
            _row(variant, RECEIVE_FIRST, [once(variant, prefer(RECEIVE))]),
            _row(variant, CLOSE_FIRST_SESSION, [session_race.run(variant, receive_first=False)]),
            _row(variant, RECEIVE_FIRST_SESSION, [session_race.run(variant, receive_first=True)]),
            _row(variant, EVERY, list(every_order(partial(once, variant)))),
            _row(variant, EVERY_WITH_SERVER, list(every_order(partial(once, variant, server_code=1011)))),
            _row(variant, AT_RANDOM, _at_random(variant, runs, seed)),
        ]
    return found


def as_json(found: Iterable[RaceRow]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


def _at_random(variant: Variant, runs: int, seed: int) -> list[Outcome]:
    """Order, code and server are drawn anew for each run."""
    draw = random.Random(seed)  # noqa: S311 - a run that can be repeated
    return [
        once(
            variant,
            draw.choice,
            own_code=draw.choice(_OWN_CODES),
            server_code=draw.choice((None, *_SERVER_CODES)),
        )
        for _ in range(runs)
    ]


def _row(variant: Variant, order: str, outcomes: Sequence[Outcome | Ends]) -> RaceRow:
    reader = sum(outcome.reader_right for outcome in outcomes)
    recorded = sum(outcome.recorded_first for outcome in outcomes)
    sends = sum(outcome.sends_right for outcome in outcomes)
    ok = reader == recorded == sends == len(outcomes)
    return RaceRow(variant.name, order, len(outcomes), reader, recorded, sends, ok)


def _read_right(socket: LiveSocket, first: Closure) -> bool:
    """Whether who reads comes to the first end at once; to a normal one where that was ours."""
    if not socket.messages.finished and socket.messages.error is None:
        return False  # it would wait for ever
    reading = socket.messages.__anext__()
    try:
        reading.send(None)
    except StopAsyncIteration:
        return first.by is Party.US
    except SessionError as error:
        return first.by is Party.SERVER and isinstance(error, ClosedByServer) and error.closure == first
    return False


def _sent_right(socket: LiveSocket, first: Closure) -> bool:
    """Whether a send raises the first end once all is over."""
    sending = socket.send(b"late")
    try:
        sending.send(None)
    except SessionError as error:
        said = ClosedByServer if first.by is Party.SERVER else ClosedHere
        return isinstance(error, said) and error.closure == first
    except StopIteration:
        pass
    return False
