"""What is understood of a sentence, typed or recognised."""

import pytest

from lab.live.model.hearing import Intent, Request, normalise, slot_in, understand


@pytest.mark.parametrize(
    "text",
    [
        "Book me the 3pm slot tomorrow, please.",
        "book me the three p m slot tomorrow please",
        "Please reserve tomorrow at 3 p.m.!",
        "schedule the 15:00 slot for tomorrow",
        "I'd like to book 3 o\N{RIGHT SINGLE QUOTATION MARK}clock tomorrow",
        "BOOK TOMORROW 3:00PM",
    ],
)
def test_one_slot_has_one_name_however_it_is_said(text: str) -> None:
    assert understand(text) == Request(Intent.BOOK, "tomorrow 3pm")


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("half past three tomorrow", "tomorrow 3:30pm"),
        ("the ten forty five a m slot on friday", "friday 10:45am"),
        ("three thirty p m", "3:30pm"),
        ("nine fifteen a m", "9:15am"),
        ("noon on monday", "monday noon"),
        ("12pm", "12pm"),
        ("00:30", "12:30am"),
        ("0:00", "12am"),
        ("12:00", "12pm"),
        ("11 oclock", "11am"),
        ("23:59", "11:59pm"),
        ("slot 7 at 8am", "8am"),
        ("25:00", None),
        ("13pm", None),
        ("0 pm", None),
        ("three", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_a_time_of_day_is_found_and_a_mere_number_is_none(text: str, slot: str | None) -> None:
    assert slot_in(normalise(text)) == slot


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Did you book it?", Intent.ASKED),
        ("Have you already booked the slot?", Intent.ASKED),
        ("Is the 3pm slot booked?", Intent.ASKED),
        ("Is it booked yet?", Intent.ASKED),
        ("What's the status?", Intent.ASKED),
        ("did that work", Intent.ASKED),
        ("book something for me", Intent.BOOK_WHAT),
        ("cancel the 3pm booking", Intent.CANCEL),
        ("Never mind.", Intent.CANCEL),
        ("Don't book the 3pm slot, cancel it", Intent.CANCEL),
        ("What should I bring?", Intent.QUESTION),
        ("How long does it take?", Intent.QUESTION),
        ("Hi, can you hear me?", Intent.GREETING),
        ("Are you still there?", Intent.GREETING),
        ("Thank you, goodbye", Intent.THANKS),
        ("bookshelf", Intent.UNKNOWN),
        ("?!", Intent.UNKNOWN),
    ],
)
def test_each_kind_of_turn_is_told_from_the_others(text: str, intent: Intent) -> None:
    assert understand(text) == Request(intent)
