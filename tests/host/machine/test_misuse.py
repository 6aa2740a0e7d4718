"""What an owner does wrong is named, with the session that it is about and what mends it."""

import pytest

from lab.host.machine.misuse import AlreadyRegistered, HostOver, Misuse, NotStarted, SessionOver


@pytest.mark.parametrize(
    "mistake",
    [AlreadyRegistered("s1"), SessionOver("s1"), NotStarted("s1", running=True), NotStarted("s1", running=False)],
    ids=lambda mistake: type(mistake).__name__,
)
def test_a_sessions_mistake_has_its_name_and_what_mends_it(mistake: AlreadyRegistered | SessionOver) -> None:
    assert isinstance(mistake, Misuse)
    assert mistake.session == "s1"
    assert "Session s1 " in str(mistake)
    assert " Fix: " in str(mistake)


def test_a_hosts_has_what_mends_it() -> None:
    assert " Fix: " in str(HostOver())
