from lab.study.findings import Machine, agrees_with_study, findings, saved
from lab.study.judgement import Row, Session, judge_row
from lab.study.scenario import Loss
from lab.study.scenarios import find
from tests.study.streams import Stream, b1, br1, r1

MACHINE = Machine(kernel="6.18.44", cores=2, took_s=58.2, backend="netns")


def row(name: str, *sessions: Session) -> Row:
    return judge_row(find(name), sessions, real=False)


def parallel() -> Stream:
    made = Stream(Loss.PACKET_LOSS).begin().call(4.05).say(5.05, "mark", name="cut")
    made.say(6.85, "lost", attempt=1, silent_s=2.0, by="silence").attempt(6.86, None, 0.28)
    made.say(7.15, "restored", attempt=2, note=True, jobs=1).say(8.15, "audio_first", attempt=2)
    return made.answered(12.0, "Booked.", consistent=True, commit_age_s=1.0).end(12.1)


def settle(name: str, *refused: bool) -> Row:
    made = []
    for number, early in enumerate(refused):
        stream = Stream(Loss.ABORT).begin().call(4.05).say(5.05, "drop", how="abort", attempt=1)
        stream.serve(5.06, "detach", connection=1, how="RST")
        stream.attempt(5.05, "h1", 0.55, refused=1011 if early else None)
        made.append(stream.end(8.0).session(name, number))
    return row(name, *made)


def test_the_page_has_ours_beside_the_study_s_and_says_what_is_out_of_range_and_why() -> None:
    page = findings(
        [
            row("R1", *(r1(k).session("R1", k) for k in range(4))),
            row("BR1", br1(audio_s=1.25).session("BR1")),
        ],
        MACHINE,
    )

    assert "5 sessions in 58 s on 2 cores; Linux 6.18.44, netns; waits lapsed" in page
    assert "The study's rows: 1 of 2 in its range, 2 as modelled." in page
    assert "Of the study's 43 sessions 5 count here" in page
    assert "Double bookings: 0." in page
    assert "| R1 | 4 | abort 1.0 s after the call" in page
    assert "2097 to 2294 ms" in page
    assert "- BR1: time from the restore to the first audio 1.250, the study's 0.76 to 1.2" in page
    assert max(map(len, page.split("\n## ")[0].splitlines())) <= 120


def test_a_second_booking_stands_at_the_top() -> None:
    page = findings([row("BR1", br1(count=2).session("BR1"))], MACHINE)

    assert "Double bookings: 1." in page
    assert "session 1 made 2 bookings" in page


def test_the_wrong_example_s_bookings_are_its_own() -> None:
    page = findings([row("BR1-no-dedupe", br1(count=2, reissued=True).session("BR1-no-dedupe"))], MACHINE)

    assert "Double bookings: 0, and 1 in the example that is wrong on purpose." in page
    assert "New ground: 1 of 1 predictions held." in page


def test_what_the_parallel_recovery_saves_is_measured_in_the_same_run() -> None:
    alone, beside = row("BR1", br1().session("BR1")), row("BR1-parallel", parallel().session("BR1-parallel"))

    assert round(saved([alone, beside]) or 0, 2) == 3.57
    assert saved([alone]) is None
    assert "3.57 s shorter than that of BR1 in the same run" in findings([alone, beside], MACHINE)
    assert "so it does" in findings([alone, beside], MACHINE)
    assert "it does not" in findings([row("BR1", br1(audio_s=0.4).session("BR1")), beside], MACHINE)


def test_settle_times_that_agree_with_the_study_are_named() -> None:
    none, half = settle("settle-0.00", False, False), settle("settle-0.50", True, True, False, False)

    assert not agrees_with_study(none)
    assert agrees_with_study(half)
    assert "these show a client the same: 0.5 s." in findings([none, half], MACHINE)


def test_a_lapsed_row_says_so_and_a_plain_one_does_not() -> None:
    page = findings([row("B1", b1().session("B1")), row("BR1", br1().session("BR1"))], MACHINE)

    (slow,) = (line for line in page.splitlines() if line.startswith("| B1 | 1 | packet"))
    (quick,) = (line for line in page.splitlines() if line.startswith("| BR1 | 1 | packet"))
    assert slow.endswith("; lapsed |")
    assert "lapsed" not in quick


def test_sessions_that_were_run_again_are_listed() -> None:
    page = findings([row("BR1", br1().session("BR1", again=("the bystander lost 3 packets",)))], MACHINE)

    assert "INVALID and run again" in page
    assert "- BR1, session 1: the bystander lost 3 packets" in page


def test_what_markdown_would_read_as_its_own_is_literal() -> None:
    page = findings([row("BR1", br1().session("BR1", again=("a | b * c",)))], MACHINE)

    assert "a \\| b \\* c" in page
