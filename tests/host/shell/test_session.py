"""Sessions are told apart by themselves, whatever their names are."""

from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.session import Roster
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
