"""A shell, a server and a backend for the machines, as unkind as the protocol allows; it checks what they command.

The shell obeys at once. The server's sessions outlive connections. A link that is dark swallows what is sent.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

from lab.live.protocol.messages import FunctionCall
from lab.live.recovery.businesskey import normalise
from lab.live.recovery.commands import Abandon, Adopt, CloseOld, Command, Dial, GiveUp, Happening, Report, Restore
from lab.live.recovery.ledger import Job, Ledger, Progress
from lab.live.recovery.policy import Policy, Recovery
from lab.live.recovery.states import RECOVERING, State

BEGIN = 1000.0


@dataclass
class Session:
    """What the server knows of one."""

    handle: str
    asked: dict[str, str] = field(default_factory=dict)
    """Slots by the ids of the calls that it made."""

    results: set[str] = field(default_factory=set)
    """Ids whose result arrived."""

    may_repeat: set[str] = field(default_factory=set)
    """Ids whose result may come once more: nothing showed the client that it arrived, or the server asked again."""

    noted: dict[int, Progress] = field(default_factory=dict)
    """How jobs stand by the notes that it was sent."""


@dataclass
class Link:
    """One connection, as both ends have it."""

    handle: str | None
    session: Session | None = None
    open: bool = True
    """The client's end."""

    answered: bool = False
    """Its dial was."""

    dark: bool = False
    sent: set[str] = field(default_factory=set)
    """Ids whose result was written to it."""

    certain: set[str] = field(default_factory=set)
    """Those that something came back after."""


class World:
    """Everything that is not the machines, and what must hold of them."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = BEGIN
        first = Session("h0")
        self.sessions = {"h0": first}
        self.recovery = Recovery(policy, handle="h0")
        self.ledger = Ledger()
        self.links = {0: Link(None, first, answered=True)}
        self.starts: dict[bool, list[float]] = {True: [], False: []}
        """When attempts to resume (True) and for new sessions (False) started."""

        self.in_series = 0
        self.adopted_at = -math.inf
        self.lost_at: float | None = None
        self.lost_links: set[int] = set()
        self.dead: set[str | None] = {""}
        """Handles that the server will never know again, and no handle at all."""

        self.talked_to = first
        """The session of the latest adopted connection."""

        self.close_awaited_until = -math.inf
        self.out_of_turn = 0
        """Attempts that the path's return allows."""

        self.path_seen = False
        self.wanted_close = False
        self.told_of_end = [0, 0]
        """The user, and the log."""

        self.booked_at: dict[str, list[float]] = {}
        self.tokens = 0

    @property
    def live(self) -> Link | None:
        """The adopted connection."""
        return None if self.recovery.connection is None else self.links[self.recovery.connection]

    # The shell.

    def obey(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Dial():
                    self._dial(command)
                case Abandon(attempt, code) | CloseOld(attempt, code):
                    assert code == 1000
                    self.links[attempt].open = False
                case Adopt():
                    self._adopt(command)
                case Restore(attempt, note):
                    self._restore(self.links[attempt], note=note)
                case GiveUp():
                    self.told_of_end[0] += 1
                    self.lost_at = None
                case Report(event):
                    self.told_of_end[1] += event is Happening.GIVEN_UP
        self._check_connections()

    def _dial(self, command: Dial) -> None:
        assert self.lost_at is not None, "nothing was lost"
        assert command.attempt not in self.links
        assert command.handle not in self.dead
        resume = command.handle is not None
        if self.starts[resume] and self.now - self.starts[resume][-1] < self.policy.every_s - 1e-6:
            assert resume, "only an attempt to resume has a reason to hurry"
            self.out_of_turn -= 1
            assert self.out_of_turn >= 0, "not paced"
        if resume:
            assert command.handle == self.talked_to.handle, "another talk's session"
            assert self.now >= self.close_awaited_until, "before the old connection's close"
            held_s = self.policy.close_wait_s + self.policy.every_s if self.path_seen else 0.0
            assert self.now - self.lost_at < self.policy.window_s + held_s, "after the window"
        self.starts[resume].append(self.now)
        self.in_series += 1
        assert self.in_series <= self.policy.max_attempts
        self.links[command.attempt] = Link(command.handle)

    def _adopt(self, command: Adopt) -> None:
        link = self.links[command.attempt]
        assert link.open
        assert link.session is not None
        assert command.resumed is (link.handle is not None)
        assert self.lost_at is not None, "a connection is adopted already"
        self.lost_at, self.adopted_at, self.talked_to = None, self.now, link.session
        self.ledger.adopted(resumed=command.resumed)
        self.talk()

    def _restore(self, link: Link, *, note: bool) -> None:
        assert link.session is not None
        assert note is self.policy.note
        jobs = self.ledger.effects(now=self.now)
        lately = {key for key, times in self.booked_at.items() if self.now - times[-1] <= 300}
        assert lately <= {job.key for job in jobs}
        link.session.noted = {job.number: job.progress for job in jobs}
        self.ledger.noted(jobs)

    def talk(self) -> None:
        """Send what is due."""
        link, results, updates = self.live, self.ledger.take(now=self.now), self.ledger.updates()
        if link is None or link.session is None:
            assert not results or self.wanted_close
            return
        for response in results:
            assert response.id in link.session.asked, "a result for an id that this session never asked"
            assert response.id not in link.sent, "twice on one connection"
            assert response.id not in link.session.results - link.session.may_repeat, "it had surely arrived"
            link.sent.add(response.id)
            if not link.dark:
                link.session.may_repeat.discard(response.id)
                link.session.results.add(response.id)
        self.ledger.told(updates, now=self.now)
        if not link.dark:
            link.session.noted.update({job.number: job.progress for job in updates})

    # The server.

    def token(self, kind: str) -> str:
        self.tokens += 1
        return f"{kind}{self.tokens}"

    def unanswered(self) -> list[int]:
        """Dials that the server may still answer, abandoned ones too."""
        return [number for number, link in self.links.items() if not link.answered]

    def accept(self, attempt: int) -> None:
        link = self.links[attempt]
        # One that was abandoned is closed in the background: it may become ready before that.
        link.answered = link.open = True
        if link.handle is None:
            link.session = Session(self.token("h"))
            self.sessions[link.session.handle] = link.session
        else:
            link.session = self.sessions[link.handle]
        self.obey(self.recovery.ready(attempt, now=self.now))

    def name(self) -> None:
        """The adopted session gets its handle."""
        if self.live is not None and self.live.session is not None and not self.live.dark:
            self.recovery.issued(self.live.session.handle, attempt=self.recovery.connection)

    def refuse(self, attempt: int, code: int) -> None:
        link = self.links[attempt]
        if link.open and link.handle is not None and code != 1011:
            self.dead.add(link.handle)
        link.answered, link.open = True, False
        self.obey(self.recovery.refused(attempt, code, now=self.now))

    def fail(self, attempt: int) -> None:
        self.links[attempt].answered, self.links[attempt].open = True, False
        self.obey(self.recovery.failed(attempt, "reset", now=self.now))

    def ask(self, slot: str, *, again: int | None = None) -> None:
        """The model calls; again: with the id of an earlier call of this session."""
        link = self.live
        if link is None or link.session is None or link.dark:
            return
        session = link.session
        if again is None or again >= len(session.asked):
            call_id = self.token("c")
            session.asked[call_id] = slot
        else:
            call_id = list(session.asked)[again]
            if call_id not in link.sent:
                session.may_repeat.add(call_id)
        call = FunctionCall(call_id, "book", {"slot": session.asked[call_id]})
        job, key = self.ledger.called(call, now=self.now), normalise("book", call.args)
        assert job is None or job.key == key
        assert key in {each.key for each in self.ledger.jobs}, "a booking that nobody makes"
        self.talk()

    def pong(self) -> None:
        """A ping that was sent now was answered now."""
        if self.live is not None and not self.live.dark:
            self.live.certain |= self.live.sent
            self.ledger.heard(self.now)

    # The backend.

    def finish(self, job: Job, *, failed: bool = False) -> None:
        status = "failed" if failed else "booked"
        self.ledger.finished(job.number, {"status": status}, now=self.now, failed=failed)
        if not failed:
            self.booked_at.setdefault(job.key, []).append(self.now)
        self.talk()

    def pending(self) -> list[Job]:
        return [job for job in self.ledger.jobs if job.progress is Progress.PENDING]

    # The network, the clock and the user.

    def lose(self, *, gone: bool) -> None:
        link = self.live
        assert link is not None
        assert link.session is not None
        link.dark = True
        link.session.may_repeat |= link.sent - link.certain
        if self.now - self.adopted_at >= self.policy.settled_s:
            self.in_series = 0
        self.lost_at, self.out_of_turn, self.path_seen = self.now, 0, False
        self.close_awaited_until = -math.inf
        self.lost_links |= {number for number, each in self.links.items() if each is link}
        link.open = link.open and not gone
        self.ledger.lost()
        self.obey(self.recovery.lost(now=self.now, gone=gone))

    def path_back(self, attempt: int) -> None:
        resuming = self.recovery.state is State.RESUMING and attempt == max(self.lost_links)
        commands = self.recovery.path_back(attempt=attempt, now=self.now)
        if resuming and self.policy.close_before_resume and commands:
            self.close_awaited_until = self.now + self.policy.close_wait_s
        self._path(seen=bool(commands))
        self.obey(commands)

    def old_closed(self, attempt: int, *, echoed: bool) -> None:
        if attempt in self.lost_links:
            self.links[attempt].open = False
        if attempt == max(self.lost_links, default=None):
            self.close_awaited_until = -math.inf
        commands = self.recovery.old_closed(attempt=attempt, echoed=echoed, now=self.now)
        self._path(seen=bool(commands))
        self.obey(commands)

    def _path(self, *, seen: bool) -> None:
        self.out_of_turn += seen
        self.path_seen = self.path_seen or seen

    def close(self) -> None:
        self.wanted_close, self.lost_at = True, None
        self.obey(self.recovery.close(now=self.now))

    def advance(self, seconds: float) -> None:
        """Time passes; the shell wakes the policy whenever it asked for it."""
        until = self.now + seconds
        while (wake_at := self.recovery.next_at()) is not None and wake_at <= until:
            assert wake_at > self.now, "it would turn in place"
            self.now = wake_at
            self.obey(self.recovery.wake(now=wake_at))
        self.now = until

    # What must hold.

    def _check_connections(self) -> None:
        opened = {number for number, link in self.links.items() if link.open}
        if self.recovery.state in RECOVERING:
            assert self.lost_at is not None
            assert len([number for number in opened if not self.links[number].answered]) <= 1 + self.policy.parallel
        elif self.recovery.state is State.ATTACHED:
            assert opened == {self.recovery.connection}, "a loser or an old one was left open"
        else:
            assert opened == set()
        assert self.wanted_close is (self.recovery.state is State.CLOSED)
        assert self.told_of_end[0] == self.told_of_end[1] <= 1

    def check_bookings(self) -> None:
        for times in self.booked_at.values():
            assert all(later - earlier > 600 for earlier, later in pairwise(times)), "booked twice"

    def conclude(self) -> None:
        """Nobody answers any more: every loss ends. Then every job ends: what lives knows all of it."""
        self.advance(self.policy.give_up_s + 1)
        assert self.lost_at is None
        assert (self.recovery.state is State.GIVEN_UP) is (self.told_of_end[0] == 1 and not self.wanted_close)
        for job in self.pending():
            self.finish(job)
        self.check_bookings()
        link = self.live
        if link is None or link.session is None or link.dark:
            return
        assert link.session.results >= set(link.session.asked)
        answered = {normalise("book", {"slot": slot}) for slot in link.session.asked.values()}
        unaware = [number for number, progress in link.session.noted.items() if progress is Progress.PENDING]
        assert {self.ledger.jobs[number - 1].key for number in unaware} <= answered
