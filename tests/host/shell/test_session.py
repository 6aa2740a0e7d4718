"""Sessions are told apart by themselves, whatever their names are."""

import pytest

from lab.host.machine.reasons import EndCause, Ending
from lab.host.protocol.messages import ErrorTold, EventBody
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.session import Roster, Session
from tests.host.shell.pairs import play


def test_a_session_is_known_by_its_own_name_and_another_one_of_that_name_by_a_number_behind_it() -> None:
    async def scenario() -> None:
        roster = Roster()
        first, second, third = (ScriptedAgent("s1", "room") for _ in range(3))
        assert roster.name(first) is None
        for session, name in ((first, "s1"), (second, "s1 (2)"), (third, "s1 (3)")):
            assert roster.free(session) == name
            roster.add(name, session)
            assert roster.name(session) == name
            assert roster[name] is session
        assert list(roster) == [first, second, third]
        roster.drop("s1")
        assert roster.name(first) is None
        assert roster.get("s1") is roster.get(None) is None
        assert roster.free(first) == "s1"
        assert roster.name(third) == "s1 (3)"

    play(scenario)


class Listening:
    """Hears, and raises if it is broken."""

    def __init__(self, *, broken: bool = False) -> None:
        self._broken = broken
        self.heard: list[EventBody | Ending] = []

    def happened(self, _session: Session, body: EventBody) -> None:
        self._hear(body)

    def closed(self, _session: Session, ending: Ending) -> None:
        self._hear(ending)

    def _hear(self, what: EventBody | Ending) -> None:
        self.heard.append(what)
        if self._broken:
            raise OSError("nobody reads it")


def test_a_listener_that_raises_keeps_nothing_from_the_others() -> None:
    async def scenario() -> None:
        agent = ScriptedAgent("s1", "room")
        listeners = [Listening(broken=True), Listening()]
        for listener in listeners:
            agent.listen(listener)
        with pytest.raises(OSError, match="nobody reads it"):
            agent.tell(ErrorTold("it rains"))
        with pytest.raises(OSError, match="nobody reads it"):
            agent.end(EndCause.USER_INITIATED)
        for listener in listeners:
            assert listener.heard == [ErrorTold("it rains"), Ending(EndCause.USER_INITIATED)]

    play(scenario)
