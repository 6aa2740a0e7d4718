"""What becomes of a host's requests: an answer, an error, or nothing with the transport; of each one thing, once."""

import pytest

from lab.host.machine.commands import Delivered, Flush, Forget, Send
from lab.host.machine.requests import JOB, Requests, refuse
from lab.host.protocol.messages import Finalized, Pong, Response

DRAIN_S = 3.0


@pytest.fixture
def requests() -> Requests:
    """Two of a session, and one of the job."""
    made = Requests(DRAIN_S)
    for name, whose in (("1", "s1"), ("2", "s1"), ("3", JOB)):
        made.came(name, whose)
    return made


def test_they_wait_in_the_order_in_which_they_came_and_each_is_somebodys(requests: Requests) -> None:
    assert requests.waiting == ["1", "2", "3"]
    assert requests.of("s1") == ["1", "2"]
    assert requests.of(JOB) == ["3"]


def test_a_sessions_answer_is_sent_and_nobody_asks_what_becomes_of_it(requests: Requests) -> None:
    assert requests.answered("1", Pong(), None, now=0.0) == [Send(Response("1", Pong()))]
    assert requests.waiting == ["2", "3"]
    assert requests.delivered("1", delivered=True) == []
    assert requests.next_at() is None


def test_the_jobs_answer_is_delivered_or_given_up_once(requests: Requests) -> None:
    assert requests.answered("3", Finalized(None), None, now=1.0) == [Send(Response("3", Finalized(None))), Flush("3")]
    assert requests.next_at() == 1.0 + DRAIN_S
    assert requests.wake(now=3.9) == []
    assert requests.wake(now=4.0) == [Delivered("3", False)]
    assert requests.delivered("3", delivered=True) == []
    assert requests.all_delivered(delivered=True) == []


def test_one_that_fails_is_answered_with_the_error_and_no_more(requests: Requests) -> None:
    assert requests.fail("2", "it broke") == [Forget("2"), refuse("2", "it broke")]
    assert requests.of("s1") == ["1"]


def test_with_the_transport_all_are_forgotten(requests: Requests) -> None:
    assert requests.forget() == [Forget("1"), Forget("2"), Forget("3")]
    assert requests.waiting == []
