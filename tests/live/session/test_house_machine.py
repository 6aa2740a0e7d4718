"""Any sequence of connects, losses, resumes, results, silences and closes leaves every session with a way out."""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lab.live.session.commands import Audit
from lab.live.session.profile import PROFILES
from lab.live.session.states import Detach
from tests.live.session.playbook import Stage

LIMIT = 3
SETTLED_S = 1.01
SHORT = st.sampled_from([0.0, 0.01, 0.2, 0.25, 0.47, 0.5, 0.99, 1.0, 2.5])
LONG = st.sampled_from([30.0, 61.0, 479.0, 480.0, 600.0, 7200.0])
PICK = st.integers(0, 1000)


class House(RuleBasedStateMachine):
    """Drives a server and watches its wire."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.open: list[int] = []
        """Connections that nobody has reported gone."""
        self.closed: set[int] = set()
        self.handles: list[str] = []
        self.read = 0
        """Lines of the wire that were looked at."""
        self.attached: dict[int, str] = {}
        """Sessions by connection, as the clients believe."""

    @initialize(
        profile=st.sampled_from(sorted(PROFILES)),
        limit=st.sampled_from([None, LIMIT]),
        settle_s=st.sampled_from([0.0, 1.0]),
    )
    def begin(self, profile: str, limit: int | None, settle_s: float) -> None:
        self.limit = limit
        self.stage = Stage(PROFILES[profile].with_(concurrent_limit=limit, settle_s=settle_s))

    def state_of(self, handle: str) -> str | None:
        name = self.stage.house._named.get(handle)
        return self.stage.house._sessions[name].state.value if name is not None else None

    @rule()
    def connect(self) -> None:
        number = next(self.numbers)
        self.stage.do(f"open {number}")
        self.open.append(number)

    @rule(seconds=SHORT)
    def talk(self, seconds: float) -> None:
        """A client comes, begins a session and has the model speak; some leave in the middle of that."""
        number = next(self.numbers)
        self.open.append(number)
        for line in (f"open {number}", f"setup {number}", f"type {number} hello"):
            self.stage.do(line)
        self.stage.until(self.stage.now + 0.9 + seconds)

    @precondition(lambda self: self.handles)
    @rule(which=PICK, attempts=st.integers(1, 3), seconds=SHORT)
    def come_back(self, which: int, attempts: int, seconds: float) -> None:
        """A client dials anew with a handle, some times over."""
        for _ in range(attempts):
            self.connect()
            self.resume(len(self.open) - 1, which)
            self.stage.until(self.stage.now + seconds)

    @precondition(lambda self: self.open)
    @rule(pick=PICK, resumption=st.sampled_from(["", "no"]), late_s=SHORT)
    def set_up(self, pick: int, resumption: str, late_s: float) -> None:
        self.stage.now += late_s
        self.stage.do(f"setup {self.open[pick % len(self.open)]} {resumption}")

    @precondition(lambda self: self.open and self.handles)
    @rule(pick=PICK, which=PICK)
    def resume(self, pick: int, which: int) -> None:
        number, handle = self.open[pick % len(self.open)], self.handles[which % len(self.handles)]
        self.stage.take(self.stage.house.wake(now=self.stage.now))
        fresh = self.stage.house._connections[number].fresh
        state, full = self.state_of(handle), not self.room()
        before = len(self.stage.told(Audit.ATTACH))
        self.stage.do(f"setup {number} {handle}")
        if fresh:
            assert len(self.stage.told(Audit.ATTACH)) - before == (state == "free" and not full)

    def room(self) -> bool:
        return self.limit is None or self.stage.house.status(now=0).counted < self.limit

    @precondition(lambda self: self.open)
    @rule(
        pick=PICK, text=st.sampled_from(["type {} book", "type {} hello", "audio {} 0000", "result {} c1", "note {} x"])
    )
    def say(self, pick: int, text: str) -> None:
        self.stage.do(text.format(self.open[pick % len(self.open)]))

    @precondition(lambda self: self.open)
    @rule(pick=PICK)
    def break_the_protocol(self, pick: int) -> None:
        self.stage.do(f"malformed {self.open[pick % len(self.open)]}")

    @precondition(lambda self: self.open)
    @rule(pick=PICK, how=st.sampled_from(Detach), late_s=SHORT)
    def lose(self, pick: int, how: Detach, late_s: float) -> None:
        self.stage.now += late_s
        self.leave(self.open[pick % len(self.open)], how)

    def leave(self, number: int, how: Detach) -> None:
        self.stage.do(f"gone {number} {how.value}")
        self.the_wire_is_in_order()
        self.open.remove(number)
        self.closed.add(number)
        self.attached.pop(number, None)

    @rule(pick=PICK, verb=st.sampled_from(["close", "heard", "heard", "dismiss"]))
    def act_on_a_session(self, pick: int, verb: str) -> None:
        living = [found.id for found in self.stage.house.status(now=0).sessions if found.state not in {"dead", "ended"}]
        if living:
            self.stage.do(f"{verb} {living[pick % len(living)]} hello")

    @rule(seconds=st.one_of(SHORT, SHORT, LONG))
    def wait(self, seconds: float) -> None:
        self.stage.until(self.stage.now + seconds)

    @rule(seconds=st.one_of(SHORT, SHORT, LONG))
    def oversleep(self, seconds: float) -> None:
        """A shell that is late: nothing of what was due in between was asked for."""
        self.stage.now += seconds

    @invariant()
    def all_holds(self) -> None:
        if hasattr(self, "stage"):
            self.no_wake_up_is_missed()
            self.the_wire_is_in_order()
            self.the_limit_holds()
            self.every_session_that_lives_has_a_way_out()

    def no_wake_up_is_missed(self) -> None:
        self.stage.take(self.stage.house.wake(now=self.stage.now))
        at = self.stage.house.next_at()
        assert at is None or at > self.stage.now

    def the_wire_is_in_order(self) -> None:
        for line in self.stage.out[self.read :]:
            _, mark, number, what, *rest = line.split()
            if mark != ">":
                continue
            assert int(number) not in self.closed, "something was sent after the close"
            if what == "setupComplete":
                assert rest[0] not in self.attached.values(), "two connections have one session"
                self.attached[int(number)] = rest[0]
            elif what == "close":
                self.closed.add(int(number))
            else:
                assert int(number) in self.attached, "something was sent before setupComplete"
            if what == "handle":
                self.handles.append(rest[0])
        self.read = len(self.stage.out)

    def the_limit_holds(self) -> None:
        status = self.stage.house.status(now=self.stage.now)
        assert status.counted == sum(found.locked for found in status.sessions)
        assert self.limit is None or status.counted <= self.limit

    def every_session_that_lives_has_a_way_out(self) -> None:
        for found in self.stage.house.status(now=self.stage.now).sessions:
            if found.state in {"attached", "held"}:
                assert found.closes_in_s is not None
                assert found.closes_in_s > 0
            if found.state == "attached":
                assert found.connection in self.open
            if found.state in {"settling", "free"}:
                assert found.handle is not None
                assert found.connection is None

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        for number in list(self.open):
            # Half of the clients close, the other half is never heard of again.
            self.leave(number, Detach.CLOSE_FRAME if number % 2 else Detach.NOTHING)
        self.stage.until(self.stage.now + SETTLED_S)
        self.whoever_is_free_can_be_resumed()
        self.stage.until(self.stage.now + 480 + 7200)
        status = self.stage.house.status(now=self.stage.now)
        assert status.counted == 0
        assert {found.state for found in status.sessions} <= {"dead", "ended"}
        assert self.stage.house.next_at() is None

    def whoever_is_free_can_be_resumed(self) -> None:
        for handle in self.handles:
            state = self.state_of(handle)
            assert state in {"free", "held", None}
            if state == "free" and self.room():
                number = next(self.numbers)
                self.stage.do(f"open {number}")
                self.stage.do(f"setup {number} {handle}")
                self.stage.until(self.stage.now + 0.6)
                assert any(line.split()[1:4] == [">", str(number), "setupComplete"] for line in self.stage.out)
                self.stage.do(f"gone {number} close frame")
                self.stage.until(self.stage.now + SETTLED_S)


House.TestCase.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestHouse = House.TestCase
