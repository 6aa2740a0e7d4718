import dataclasses

import pytest

from lab.study.proofs import defect, doubts, lateness, stuck
from lab.study.scenario import Loss
from tests.study.streams import Stream, b1, br1, r1


def test_a_session_that_went_as_planned_has_no_doubts() -> None:
    assert [doubts(made.observed) for made in (r1(), br1(), b1())] == [(), (), ()]


def test_a_script_that_ended_early_proves_nothing() -> None:
    assert "did not come to the end" in doubts(r1().without("done").observed)[0]
    assert "did not count its bookings" in doubts(r1().without("bookings").observed)[0]


def test_a_connection_that_was_never_lost_proves_nothing() -> None:
    assert doubts(br1().without("mark").observed) == ("the connection was never lost",)


def test_a_silent_loss_of_which_the_server_was_told_was_none() -> None:
    assert "the server saw the connection end (RST)" in doubts(b1(told=True).observed)[0]


def test_the_server_s_own_kernel_may_end_it_and_so_may_whoever_mends_the_path() -> None:
    gave_up = br1().serve(12.0, "detach", connection=1, how="TCP timeout")
    mended = br1().say(11.0, "mark", name="heal").serve(12.0, "detach", connection=1, how="close frame")
    refused = br1().serve(8.0, "detach", connection=2, how="close frame")

    assert [doubts(made.observed) for made in (gave_up, mended, refused)] == [(), (), ()]


def test_after_its_own_close_the_server_may_let_go() -> None:
    made = (
        b1().serve(20.0, "closed", connection=1, because="silence").serve(21.0, "detach", connection=1, how="nothing")
    )

    assert doubts(made.observed) == ()


def test_a_second_silent_loss_has_to_be_silent_too() -> None:
    made = br1().serve(10.7, "attach", connection=6).say(15.02, "mark", name="freeze")
    told = made.serve(15.05, "detach", connection=6, how="FIN")

    assert doubts(told.observed) == ("the loss was not silent: the server saw the connection end (FIN)",)


def test_a_server_that_told_nothing_or_not_all_proves_nothing() -> None:
    mute, full = br1(), br1().serve(14.0, "untold", events=7)
    mute.server = []

    assert doubts(mute.observed) == ("the server told nothing",)
    assert doubts(full.observed) == ("7 events of the server's found no room",)


def test_a_defect_is_none_of_the_machine_s_doings() -> None:
    server, assistant = (
        br1().serve(9.0, "defect", connection=3, error="KeyError: 3"),
        br1().say(9.0, "defect", error="x"),
    )

    assert defect(server.observed) == "the server met a defect: KeyError: 3"
    assert defect(assistant.observed) == "the assistant met a defect: x"
    assert defect(br1().observed) is None
    assert lateness(server.observed) == ()


def test_an_abort_that_the_server_did_not_see_proves_nothing() -> None:
    made = r1()
    made.server = [each for each in made.server if each["event"] != "detach"]

    assert "did not see the connection end" in doubts(made.observed)[0]


def test_an_answer_to_a_question_that_the_server_never_had_proves_nothing() -> None:
    made = r1()
    made.server = [each for each in made.server if each["event"] != "typed"]
    twice = r1().say(13.05, "answer", asked="Did you book it?", text="It is booked.", consistent=True)
    before_it = r1()
    before_it.server[-1]["at"] += 5.0

    for each in (made, twice, before_it):
        assert doubts(each.observed) == (
            "the assistant tells of an answer, and the server was never asked 'Did you book it?'",
        )


def test_a_count_that_is_not_the_file_s_proves_nothing() -> None:
    seen = r1().observed

    assert doubts(dataclasses.replace(seen, stored=1)) == ()
    assert doubts(dataclasses.replace(seen, stored=2)) == ("the assistant counted 1 bookings, and its file holds 2",)


def test_where_a_script_got_stuck_is_said() -> None:
    made = Stream(Loss.NONE).say(3.0, "stuck", step=4, do="ask", why="no answer within 30 s").end(3.0, ok=False)

    assert stuck(made.observed) == "step 4 (ask): no answer within 30 s"
    assert stuck(r1().observed) is None


def test_a_program_that_the_machine_kept_waiting_proves_nothing_of_times() -> None:
    server = br1().serve(12.0, "late", by_s=0.4)
    assistant = br1().say(15.05, "watchdog", looks=40, late_p99_s=0.3, late_most_s=0.31)
    little = br1().serve(12.0, "late", by_s=0.12).say(15.05, "watchdog", looks=40, late_p99_s=0.1, late_most_s=0.1)
    afterwards = br1().serve(20.0, "late", by_s=2.0)

    assert lateness(server.observed) == doubts(server.observed)
    assert doubts(server.observed) == ("the machine was too busy: the server ran 0.40 s late (at most 0.25)",)
    assert doubts(assistant.observed) == ("the machine was too busy: the assistant ran 0.31 s late (at most 0.25)",)
    assert doubts(little.observed) == doubts(afterwards.observed) == ()


@pytest.mark.parametrize(
    ("p50_s", "most_s", "said"),
    [
        (0.0019, 0.099, ()),
        (0.0026, 0.05, ("half of its wake-ups were 2.6 ms late (at most 2)",)),
        (0.001, 0.2, ("a wake-up was 200.0 ms late (at most 100)",)),
    ],
    ids=["in time", "every wake-up", "one wake-up"],
)
def test_a_lapse_multiplies_what_a_busy_machine_adds(p50_s: float, most_s: float, said: tuple[str, ...]) -> None:
    made = b1().say(15.0, "lapsed", factor=30.0, looks=570, late_p50_s=p50_s, late_most_s=most_s)

    found = tuple(f"the machine was too busy for a lapse: {each}" for each in said)
    assert lateness(made.observed) == doubts(made.observed) == found


@pytest.mark.parametrize("name", ["cut", "heal", "freeze", "unfreeze", "move-address"])
def test_a_mark_that_was_obeyed_late_makes_every_time_after_it_the_machine_s(name: str) -> None:
    late = br1().say(12.0, "mark", name=name, done_at=1014.3)
    in_time = br1().say(12.0, "mark", name=name, done_at=1012.2)
    in_a_lapse = br1().say(11.0, "lapse", since=1011.0, factor=30).say(12.0, "mark", name=name, done_at=1012.2)

    said = f"the machine was too busy: the {name} came 2.30 s after its mark (at most 0.25)"
    assert doubts(late.observed) == (said,)
    assert doubts(in_time.observed) == ()
    assert doubts(in_a_lapse.observed) == ()
