import pytest

from lab.live.client.judging import Saying, is_consistent, what_it_says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Yes, your 3 pm slot tomorrow is booked. The confirmation is BK-1001.", Saying.BOOKED),
        ("I've booked the 3 pm slot for tomorrow.", Saying.BOOKED),
        ("You're all set for 3 pm tomorrow!", Saying.BOOKED),
        ("The booking is confirmed.", Saying.BOOKED),
        ("Your reservation is made: reserved for 3 pm.", Saying.BOOKED),
        ("I'm booking the 3 pm slot for you now.", Saying.IN_PROGRESS),
        ("I am still booking it, one moment please.", Saying.IN_PROGRESS),
        ("The booking is still being processed.", Saying.IN_PROGRESS),
        ("It is not booked yet, I'm waiting for the system.", Saying.IN_PROGRESS),
        ("I haven't booked anything yet. What would you like?", Saying.NOTHING),
        ("No, I did not book anything.", Saying.NOTHING),
        ("There is no booking.", Saying.NOTHING),
        ("I'm sorry, the booking failed.", Saying.FAILED),
        ("I wasn't able to book the slot.", Saying.FAILED),
        ("Sorry, I couldn't book that slot.", Saying.FAILED),
        ("I\N{RIGHT SINGLE QUOTATION MARK}m booking it for you now.", Saying.IN_PROGRESS),
        ("The weather is fine.", Saying.UNCLEAR),
        ("", Saying.UNCLEAR),
    ],
)
def test_an_answer_says(text: str, says: Saying) -> None:
    assert what_it_says(text) is says


def test_only_the_truth_is_consistent() -> None:
    assert is_consistent(Saying.BOOKED, Saying.BOOKED)
    assert not is_consistent(Saying.IN_PROGRESS, Saying.BOOKED)


def test_an_unclear_answer_is_never_consistent() -> None:
    assert not is_consistent(Saying.UNCLEAR, Saying.UNCLEAR)
