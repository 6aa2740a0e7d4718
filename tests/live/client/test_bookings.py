from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.live.client.bookings import BookingError, Bookings

KEY = 'book_slot(slot="tomorrow 15:00")'


def book(bookings: Bookings, call_id: str = "c1") -> str:
    return bookings.commit("tomorrow 3pm", key=KEY, call_id=call_id, now=4.0).confirmation_id


def test_confirmations_count_from_1001() -> None:
    bookings = Bookings()

    assert [book(bookings), book(bookings)] == ["BK-1001", "BK-1002"]
    assert bookings.count() == 2


def test_a_row_says_which_call_it_was_made_for_and_when() -> None:
    bookings = Bookings()
    book(bookings)

    (row,) = bookings.rows()
    assert (row.slot, row.key, row.call_id, row.committed_at) == ("tomorrow 3pm", KEY, "c1", 4.0)


def test_others_see_what_is_committed(tmp_path: Path) -> None:
    bookings = Bookings(tmp_path / "bookings.sqlite")
    book(bookings)

    assert Bookings(tmp_path / "bookings.sqlite").count() == 1


def test_a_file_goes_on_counting(tmp_path: Path) -> None:
    first = Bookings(tmp_path / "bookings.sqlite")
    book(first)
    first.close()

    assert book(Bookings(tmp_path / "bookings.sqlite")) == "BK-1002"


def test_a_unique_key_takes_one_booking() -> None:
    bookings = Bookings(unique=True)
    book(bookings)

    with pytest.raises(BookingError, match="is booked already"):
        book(bookings, "c2")
    assert bookings.count() == 1


def test_on_a_full_disk_the_very_next_booking_is_refused(tmp_path: Path) -> None:
    bookings = Bookings(tmp_path / "bookings.sqlite")
    book(bookings)
    bookings.fill_disk()

    with pytest.raises(BookingError, match="full"):
        book(bookings, "c2")
    assert bookings.count() == 1


def test_a_file_that_is_no_database_is_said_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "bookings.sqlite"
    file.write_bytes(b"no database at all" * 100)

    with pytest.raises(EnvironmentNotReady, match=r"bookings\.sqlite"):
        Bookings(file)
