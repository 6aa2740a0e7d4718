from lab.study.narrative import narrate
from tests.study.streams import b1, br1, r1


def test_every_line_has_the_session_s_time_and_the_time_from_the_loss() -> None:
    lines = narrate(r1().observed)

    (call,) = (line for line in lines if "asked to call book_slot" in line)
    (again,) = (line for line in lines if "connection 3 is set up" in line)
    assert call.split()[0] == "4.050", "from the first event that is told, the attachment"
    assert again.split()[1] == "+2.150"


def test_a_silent_loss_says_that_nobody_is_told() -> None:
    assert [line for line in narrate(br1().observed) if "--- cut: nobody is told ---" in line]


def test_ninety_refusals_take_three_lines() -> None:
    lines = narrate(b1().observed)

    assert len([line for line in lines if "refused" in line]) <= 5
    assert any("more refused" in line for line in lines)


def test_an_event_that_lacks_what_its_words_name_is_shown_as_it_is() -> None:
    made = r1().say(20.0, "path_back", unknown=3)

    assert "path_back {'unknown': 3}" in narrate(made.observed)[-1]


def test_an_end_without_a_close_frame_has_no_colon_for_a_code_that_there_is_not() -> None:
    made = r1().say(20.0, "closed", attempt=1, code=None, reason="")

    assert narrate(made.observed)[-1].endswith("connection 1 is closed")


def test_nothing_has_no_story() -> None:
    made = r1()
    made.assistant, made.server = [], []

    assert narrate(made.observed) == []
