"""Every request of a remote ends once, and a silent host is asked before it is given up."""

import pytest

from lab.host.machine.commands import Audit, Emit, Note, Outcome, RemoteCommand, Send, Settle
from lab.host.machine.remote import TRANSPORT_CLOSED, RemoteMachine, Watch
from lab.host.protocol.errors import NoMessage
from lab.host.protocol.messages import (
    AgentStateChanged,
    CloseReason,
    ErrorTold,
    Event,
    EventBody,
    Message,
    Ping,
    PlaybackFlush,
    Pong,
    Request,
    Response,
    SessionClosed,
    Unread,
)
from tests.host.machine.playbook import word

WATCH = Watch(ask_after_s=2.0, lost_after_s=1.0)


def words(commands: list[RemoteCommand]) -> list[str]:
    return [word(command) for command in commands if not isinstance(command, Note)]


def asking(watch: Watch | None = None) -> RemoteMachine:
    machine = RemoteMachine(now=0.0, timeout_s=10.0, watch=watch)
    assert machine.request(Ping(), now=0.0) == ("r1", [Send(Request("r1", Ping()))])
    return machine


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response("r1", Pong()), Settle("r1", Outcome.ANSWERED, Pong())),
        (Response("r1"), Settle("r1", Outcome.ANSWERED)),
        (Response("r1", error="no"), Settle("r1", Outcome.REFUSED, error="no")),
        (Response("r1", error=""), Settle("r1", Outcome.REFUSED)),
    ],
)
def test_a_response_settles_its_request(response: Response, expected: Settle) -> None:
    machine = asking()

    assert machine.receive(response, now=1.0) == [expected]
    assert machine.waiting == frozenset()
    assert machine.next_at() is None


@pytest.mark.parametrize("name", ["r1", "r7", "w9"])
def test_a_response_without_a_request_settles_nothing(name: str) -> None:
    machine = asking()
    machine.receive(Response("r1", Pong()), now=1.0)

    assert words(machine.receive(Response(name, Pong()), now=1.0)) == []
    assert machine.waiting == frozenset()


def test_it_is_written_down_too() -> None:
    assert asking().receive(Response("r7"), now=1.0) == [Note(Audit.UNASKED, {"request": "r7"})]


def test_a_request_without_an_answer_times_out_and_a_late_one_is_no_answer() -> None:
    machine = asking()
    assert machine.next_at() == 10

    assert machine.wake(now=9.9) == []
    assert words(machine.wake(now=10.0)) == ["settle r1 timed out no answer in time"]
    assert words(machine.receive(Response("r1", Pong()), now=11.0)) == []


def test_each_request_may_have_its_own_time_out() -> None:
    machine = asking()
    machine.request(Ping(), now=0.0, timeout_s=1.0)

    assert machine.next_at() == 1
    assert words(machine.wake(now=1.0)) == ["settle r2 timed out no answer in time"]


def test_with_the_transport_all_that_wait_are_told_at_once_and_who_asks_later_too() -> None:
    machine = asking(WATCH)
    machine.request(Ping(), now=0.0)

    assert words(machine.lost()) == [f"settle r1 lost {TRANSPORT_CLOSED}", f"settle r2 lost {TRANSPORT_CLOSED}"]
    assert machine.lost() == []
    assert machine.next_at() is None
    assert machine.request(Ping(), now=1.0)[1] == [Settle("r3", Outcome.LOST, error=TRANSPORT_CLOSED)]


def test_a_request_that_did_not_go_out_is_lost_alone() -> None:
    machine = asking()

    assert machine.unsent("r1", "no") == [Settle("r1", Outcome.LOST, error="no")]
    assert machine.unsent("r1", "no") == []


def test_events_are_told_on_and_the_end_of_the_session_is_remembered() -> None:
    machine = asking()
    end = SessionClosed(CloseReason.ERROR, "broken")

    assert machine.receive(Event(AgentStateChanged()), now=1.0) == [Emit(Event(AgentStateChanged()))]
    assert machine.closed is None
    assert machine.receive(Event(end), now=1.0) == [Emit(Event(end))]
    assert machine.closed == end


@pytest.mark.parametrize(
    ("body", "kept"), [(AgentStateChanged(), False), (Unread("overlapping_speech"), False), (ErrorTold("no"), True)]
)
def test_an_event_of_the_next_session_says_that_there_is_one(body: EventBody, kept: bool) -> None:
    """An error may be the host's own."""
    machine = asking()
    machine.receive(Event(SessionClosed(CloseReason.COMPLETED)), now=1.0)
    machine.receive(Event(body), now=2.0)

    assert (machine.closed is not None) is kept


@pytest.mark.parametrize("message", [Event(None), PlaybackFlush(), Request("1", Ping())])
def test_what_it_does_not_know_it_ignores(message: Message) -> None:
    (note,) = asking().receive(message, now=1.0)

    assert isinstance(note, Note)
    assert note.event is Audit.IGNORED


def test_what_is_no_message_is_written_down() -> None:
    (note,) = asking().malformed(NoMessage("none"))

    assert isinstance(note, Note)
    assert note.event is Audit.MALFORMED


def test_a_silent_host_is_asked_and_then_given_up() -> None:
    machine = RemoteMachine(now=0.0, watch=WATCH)
    assert machine.next_at() == 2

    assert words(machine.wake(now=2.0)) == ["send w1 Ping"]
    assert machine.next_at() == 3
    machine.request(Ping(), now=2.5)
    assert words(machine.wake(now=3.0)) == ["settle r2 lost nothing came for 3.0 s", "dead 3"]
    assert machine.next_at() is None


def test_a_ping_that_went_out_late_has_its_whole_time() -> None:
    """What stood still was this side."""
    machine = RemoteMachine(now=0.0, watch=WATCH)

    assert words(machine.wake(now=7.5)) == ["send w1 Ping"]
    assert machine.next_at() == 8.5
    assert machine.wake(now=7.5) == []
    assert machine.receive(Response("w1", Pong()), now=7.6) == []
    assert machine.next_at() == 9.6
    assert words(machine.wake(now=10.0)) == ["send w2 Ping"]


@pytest.mark.parametrize("answer", [Response("w1", Pong()), Response("w1", error="no active session")])
def test_any_answer_shows_that_somebody_is_there(answer: Response) -> None:
    machine = RemoteMachine(now=0.0, watch=WATCH)
    machine.wake(now=2.0)

    assert machine.receive(answer, now=2.9) == []
    assert machine.next_at() == pytest.approx(4.9)


def test_anything_else_shows_it_as_well_and_the_late_pong_is_no_mistake() -> None:
    machine = RemoteMachine(now=0.0, watch=WATCH)
    machine.wake(now=2.0)
    machine.receive(Event(AgentStateChanged()), now=2.5)

    assert machine.next_at() == 4.5
    assert machine.receive(Response("w1", Pong()), now=2.6) == []
