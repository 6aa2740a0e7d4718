"""Whatever happens to a job: its shutdown ends, every request for the verdict is answered once, each room goes once."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lab.host.machine.commands import CloseHost, CloseSession, DeleteRoom, JobCommand, Judge, Reply
from lab.host.machine.job import JobMachine
from lab.host.machine.states import JobState
from lab.host.protocol.messages import CloseReason, FinalizeSimulation, Verdict

TIMEOUT_S = 10.0
SESSIONS = st.sampled_from(["s1", "s2", "s3"])
ROOMS = st.sampled_from(["room", "other"])


class Working(RuleBasedStateMachine):
    @initialize(simulated=st.booleans())
    def begin(self, simulated: bool) -> None:
        self.simulated = simulated
        self.job = JobMachine("room", simulated=simulated, session_end_timeout_s=TIMEOUT_S)
        self.now = 0.0
        self.number = 0
        self.running: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.done: list[JobCommand] = []
        self.draining: Counter[str | None] = Counter()

    def do(self, commands: list[JobCommand]) -> None:
        self.done += commands
        self.draining.update(command.session for command in commands if isinstance(command, CloseHost))

    def count(self, kind: type) -> int:
        return sum(isinstance(command, kind) for command in self.done)

    @rule(session=SESSIONS, room=ROOMS)
    def start(self, session: str, room: str) -> None:
        if self.job.state is JobState.RUNNING and session not in self.running:
            self.do(self.job.started(session, room))
            self.running.add(session)

    @rule(session=SESSIONS)
    def close(self, session: str) -> None:
        self.do(self.job.session_closed(session, now=self.now))
        self.running.discard(session)

    @rule()
    def finalize(self) -> None:
        self.number += 1
        self.asked[str(self.number)] = 1
        self.do(self.job.finalize(str(self.number), FinalizeSimulation()))

    @rule(verdict=st.booleans())
    def judge(self, verdict: bool) -> None:
        if self.count(Judge):
            self.do(self.job.judged(Verdict() if verdict else None, None if verdict else "no"))

    @rule(delivered=st.booleans())
    def reply(self, delivered: bool) -> None:
        if self.count(Reply):
            self.do(self.job.replied(delivered=delivered, now=self.now))

    @rule()
    def leave(self) -> None:
        self.do(self.job.simulator_left(now=self.now))

    @rule(room=ROOMS)
    def delete(self, room: str) -> None:
        self.do(self.job.delete_room(room, CloseReason.COMPLETED, now=self.now))

    @rule()
    def shutdown(self) -> None:
        self.do(self.job.shutdown(CloseReason.JOB_SHUTDOWN, now=self.now))

    @rule(session=st.none() | SESSIONS)
    def host_closed(self, session: str | None) -> None:
        if self.draining[session]:
            self.draining[session] -= 1
            self.do(self.job.host_closed(session))

    @rule(passed=st.floats(0, TIMEOUT_S))
    def wait(self, passed: float) -> None:
        self.now += passed
        self.do(self.job.wake(now=self.now))

    @invariant()
    def nothing_is_done_twice(self) -> None:
        if not hasattr(self, "job"):
            return
        assert self.count(Judge) <= 1
        rooms = Counter(command.room for command in self.done if isinstance(command, DeleteRoom))
        assert set(rooms.values()) <= {1}
        replies = Counter(command.request_id for command in self.done if isinstance(command, Reply))
        assert replies <= self.asked
        hosts = Counter(command.session for command in self.done if isinstance(command, CloseHost))
        assert hosts[None] <= 1
        assert self.job.state is not JobState.DONE or not self.draining.total()

    @invariant()
    def under_a_simulation_the_room_goes_when_all_is_done(self) -> None:
        if hasattr(self, "job") and self.simulated and DeleteRoom("room") in self.done:
            assert self.job.state is JobState.DONE

    def teardown(self) -> None:
        if not hasattr(self, "job"):
            return
        self.do(self.job.shutdown(CloseReason.JOB_SHUTDOWN, now=self.now))
        self.do(self.job.wake(now=self.now + TIMEOUT_S))
        assert CloseHost() in self.done
        for session in list(self.draining.elements()):
            self.do(self.job.host_closed(session))
        assert self.job.state is JobState.DONE
        replies = Counter(command.request_id for command in self.done if isinstance(command, Reply))
        assert replies == self.asked
        closed = [command for command in self.done if isinstance(command, CloseSession)]
        assert len(closed) == len({command.session for command in closed})


TestWorking = Working.TestCase
