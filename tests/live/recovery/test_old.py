"""A lost connection is closed, and closed again when its path is back, each once."""

from lab.live.recovery.commands import CloseOld
from lab.live.recovery.old import OldConnections


def test_a_connection_that_is_left_is_closed_and_closed_again_with_its_path_back() -> None:
    old = OldConnections()

    assert old.leave(0, gone=False, close=True) == [CloseOld(0)]
    assert old.latest == 0
    assert old.awaits_path(0)
    assert old.close_again(0) == [CloseOld(0)]
    assert not old.awaits_path(0)
    assert old.close_the_rest() == []


def test_one_that_is_not_closed_at_once_is_closed_with_the_rest_and_once() -> None:
    old = OldConnections()

    assert old.leave(0, gone=False, close=False) == []
    assert old.leave(1, gone=False, close=True) == [CloseOld(1)]
    assert old.close_the_rest() == [CloseOld(0)]
    assert old.close_the_rest() == []
    assert old.awaits_path(0)


def test_one_whose_socket_is_gone_needs_nothing() -> None:
    old = OldConnections()

    assert old.leave(0, gone=True, close=True) == []
    assert old.latest == 0
    assert not old.awaits_path(0)
    assert not old.ended(0)


def test_an_end_is_news_once() -> None:
    old = OldConnections()
    old.leave(0, gone=False, close=True)

    assert old.ended(0)
    assert not old.ended(0)
    assert not old.awaits_path(0)
