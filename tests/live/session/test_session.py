"""One session by itself: what the scripts of a whole server do not reach."""

import pytest

from lab.live.protocol.closing import INTERNAL_ERROR
from lab.live.protocol.messages import SessionResumption, Setup
from lab.live.session.commands import Close, Note, Send
from lab.live.session.connections import Connection
from lab.live.session.conversation import Conversation
from lab.live.session.profile import DEFAULT
from lab.live.session.session import Session
from lab.live.session.states import Detach, ImpossibleEvent, State
from tests.live.session.fakes import FakeEar, FakeModel


class Restless(FakeModel):
    """Asks to be woken at once, for ever."""

    def next_at(self) -> float | None:
        return 0.0


def session(model: FakeModel | None = None) -> Session:
    conversation = Conversation(DEFAULT, model or FakeModel(), FakeEar())
    return Session("s", DEFAULT, conversation, token=lambda: "h", now=0)


def attached(model: FakeModel | None = None) -> Session:
    found = session(model)
    found.attach(Connection(1, 0), Setup("m", session_resumption=SessionResumption()), ready_at=0.3, now=0)
    return found


def test_a_connection_cannot_take_a_session_that_another_one_has() -> None:
    with pytest.raises(ImpossibleEvent):
        attached().attach(Connection(2, 1), Setup("m"), ready_at=1, now=1)


def test_the_lock_is_taken_before_setup_complete_is_sent() -> None:
    found = attached()

    assert (found.state, found.locked) == (State.ATTACHED, True)
    assert [command for command in found.wake(now=0.2) if isinstance(command, Send)] == []
    assert [type(command) for command in found.wake(now=0.3)] == [Note, Send, Send]


def test_a_close_is_sent_once() -> None:
    found = attached()

    assert Close(1, 1011, INTERNAL_ERROR.reason) in found.close(INTERNAL_ERROR, "test", now=1)
    assert found.close(INTERNAL_ERROR, "test", now=1) == []


def test_a_session_is_over_only_when_its_connection_is_gone_too() -> None:
    found = attached()
    found.wake(now=0.3)
    found.wake(now=481)
    assert (found.state, found.over) == (State.DEAD, False)

    found.leave(Detach.NOTHING, now=490)
    assert (found.state, found.over) == (State.DEAD, True)


def test_who_is_over_hears_nothing_wakes_never_and_is_dismissed_once() -> None:
    found = attached()
    found.dismiss(now=1)
    found.leave(Detach.CLOSE_FRAME, now=1)

    assert found.heard("hello", now=2) == []
    assert found.next_at() is None
    assert found.wake(now=1e9) == []
    assert found.dismiss(now=3) == []


def test_a_model_that_never_comes_to_rest_is_named_as_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.live.session.session.MOST_ROUNDS", 10)

    with pytest.raises(RuntimeError, match="Session s asks to be woken"):
        attached(Restless()).wake(now=1)
