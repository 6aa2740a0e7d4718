"""The scripted model, by script; nothing here waits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.client.judging import what_it_says
from lab.live.model.manner import Manner
from lab.live.model.scripted import TOOL, declared
from lab.live.model.speech import EndOfSpeech
from lab.live.protocol.messages import FunctionResponse, Json
from lab.live.session.profile import DEFAULT
from lab.live.voice.clips import CHUNK_S, load
from tests.live.model.stage import ASK, BOOK, BOOKED, Stage, result, said, seeded, user

NOTE = """[System note, not said by the user] The connection was lost, and the talk goes on in a new session.
- book_slot (slot: tomorrow 3pm): {}
Do not repeat any of these actions. Tell the user in one short sentence how things stand."""

UPDATE = NOTE.replace("The connection was lost", "An action that was still being processed has come to its end")


def booked() -> Stage:
    """A call is out since 0.5 s."""
    stage = Stage()
    stage.model.prompt(BOOK, now=0)
    return stage.until(1)


def test_a_request_to_book_becomes_a_call_and_no_word_is_said_meanwhile() -> None:
    stage = booked()

    assert stage.until(100).lines == ["0.500 call c1 tomorrow 3pm"]
    assert stage.model.idle
    assert list(stage.model.pending) == ["c1"]
    assert stage.model.pending["c1"].name == TOOL


def test_a_result_is_announced_and_the_answer_is_taken_from_it() -> None:
    stage = booked()

    assert stage.model.respond([result("c1")], now=2) == ()

    assert stage.until(2.599).lines[1:] == []
    assert stage.until(2.6).lines[1] == "2.600 audio"
    assert stage.until(20).words == "Done: the 3 pm slot tomorrow is booked. The confirmation is BK-1001."
    assert not stage.model.pending
    stage.model.prompt(ASK, now=20)
    assert stage.until(40).words.endswith("Yes, the 3 pm slot tomorrow is booked. The confirmation is BK-1001.")


def test_told_nothing_it_says_that_it_is_booking_now_however_late_it_is() -> None:
    stage = booked()
    stage.model.prompt(ASK, now=900)

    assert stage.until(1000).words == "I'm booking the 3 pm slot tomorrow for you now."
    assert list(stage.model.pending) == ["c1"]


def test_without_a_call_it_has_booked_nothing() -> None:
    stage = Stage()
    stage.model.prompt("Hi, can you hear me?", now=0)
    stage.until(10).model.prompt(ASK, now=10)

    assert stage.until(20).words == "Yes, I can hear you. How can I help?I haven't booked anything yet. Shall I?"


@pytest.mark.parametrize(
    ("response", "answer", "judged"),
    [
        (BOOKED, "Yes, the 3 pm slot tomorrow is booked. The confirmation is BK-1001.", "booked"),
        ({"status": "booked", "duplicate_of": "c0"}, "Yes, the 3 pm slot tomorrow is booked.", "booked"),
        ({"result": "ok"}, "Yes, the 3 pm slot tomorrow is booked.", "booked"),
        ({"confirmation_id": 7}, "Yes, the 3 pm slot tomorrow is booked. The confirmation is 7.", "booked"),
        ({"status": "pending"}, "The booking of the 3 pm slot tomorrow is still being processed.", "in progress"),
        ({"status": "in_progress"}, "The booking of the 3 pm slot tomorrow is still being processed.", "in progress"),
        ({"status": "failed", "reason": "disk full"}, "No, booking the 3 pm slot tomorrow failed.", "failed"),
        ({"error": "disk full"}, "No, booking the 3 pm slot tomorrow failed.", "failed"),
        ({"status": "not booked"}, "No, booking the 3 pm slot tomorrow failed.", "failed"),
        ({"weather": "fine"}, "I do not know how the 3 pm slot tomorrow came out.", "unclear"),
    ],
)
def test_the_answer_says_what_the_response_said_and_a_judge_reads_it_so(
    response: dict[str, object], answer: str, judged: str
) -> None:
    stage = booked()
    stage.model.respond([FunctionResponse("c1", TOOL, response)], now=1)
    announced = stage.until(20).words
    stage.model.prompt(ASK, now=20)

    assert stage.until(40).words.removeprefix(announced) == answer
    assert what_it_says(answer).value == judged
    assert what_it_says(announced).value == judged


def test_a_result_for_a_call_that_nobody_made_is_handed_back_and_tells_nothing() -> None:
    stage = booked()

    assert stage.model.respond([result("c9"), result(None, "other")], now=1) == ("c9", "other")

    assert stage.model.next_at() is None
    assert list(stage.model.pending) == ["c1"]


def test_a_result_counts_once_and_without_an_id_it_is_the_only_call_of_its_tool() -> None:
    stage = booked()

    assert stage.model.respond([result(None)], now=1) == ()
    assert stage.model.respond([result("c1")], now=1) == ("c1",)


def test_a_silent_result_is_known_and_not_told_of_and_one_that_goes_on_leaves_its_call_open() -> None:
    stage = booked()
    silent = FunctionResponse("c1", TOOL, {"status": "pending"}, {"scheduling": "SILENT", "willContinue": True})

    assert stage.model.respond([silent], now=1) == ()

    assert stage.model.next_at() is None
    assert list(stage.model.pending) == ["c1"]
    assert stage.model.belief.status.value == "processing"


def test_an_answer_that_tells_the_result_makes_its_announcement_superfluous() -> None:
    stage = booked()
    stage.model.prompt(ASK, now=2)
    stage.model.respond([result("c1")], now=2.5)

    assert stage.until(50).words == "Yes, the 3 pm slot tomorrow is booked. The confirmation is BK-1001."


def test_a_turn_comes_in_the_protocols_order_and_is_complete_when_it_has_been_played() -> None:
    stage = Stage()
    stage.model.prompt("What should I bring with me?", now=0)
    stage.until(100)

    kinds = [line.split()[1] for line in stage.lines]
    played_s = sum(len(pcm) for _, pcm in stage.audio) / 2 / 24_000
    assert kinds[:2] == ["audio", "words"]
    assert kinds[-2:] == ["generated", "complete"]
    assert kinds.count("complete") == kinds.count("generated") == 1
    assert stage.messages[-1][0] == pytest.approx(1 + played_s)
    usage = stage.messages[-1][1].usage_metadata
    assert usage is not None
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["responseTokenCount"]


def test_audio_bursts_so_that_soon_tens_of_kilobytes_are_out_and_after_a_second_only_small_messages() -> None:
    stage = Stage()
    stage.model.prompt("What should I bring with me?", now=0)
    stage.until(100)
    first = stage.audio[0][0]

    early = sum(len(pcm) * 4 / 3 for at, pcm in stage.audio if at <= first + 0.2)
    assert 30_000 < early < 70_000
    assert stage.audio[-1][0] < first + 1.0
    assert stage.messages[-1][0] > first + 1.5, "it must be speaking 1.0 s after it began"


def test_it_speaks_from_its_first_audio_to_the_end_of_playback() -> None:
    stage = Stage()
    stage.model.prompt("hello", now=0)
    seen = [(stage.model.speaking, stage.model.idle)]
    for now in (1, 2, 100):
        stage.until(now)
        seen.append((stage.model.speaking, stage.model.idle))

    assert seen == [(False, False), (True, False), (True, False), (False, True)]
    assert stage.messages[-1][0] > 2


def test_an_interruption_ends_the_turn_without_generation_complete_and_cancels_pending_calls() -> None:
    stage = booked()
    stage.model.prompt("What should I bring?", now=1)
    stage.until(2.1).model.interrupt(now=2.1)

    assert stage.until(100).lines[-3:] == ["2.100 interrupted", "2.100 cancel c1", "2.100 complete"]
    assert not any("generated" in line for line in stage.lines)
    assert stage.model.respond([result("c1")], now=3) == ("c1",)
    stage.model.prompt(ASK, now=4)
    assert stage.until(20).words.endswith("I stopped booking the 3 pm slot tomorrow when you interrupted me.")


def test_an_interruption_of_silence_changes_nothing() -> None:
    stage = booked()
    stage.model.prompt("What should I bring?", now=1)
    stage.model.interrupt(now=1.5)

    assert stage.until(2).lines[-2:] == ["2.000 audio", "2.000 words"]
    assert list(stage.model.pending) == ["c1"]


def test_who_talks_while_it_speaks_interrupts_and_is_answered() -> None:
    stage = Stage()
    stage.model.prompt("hello", now=0)
    stage.until(1.1).model.prompt(ASK, now=1.1)

    kinds = [line.split(maxsplit=1)[1] for line in stage.until(1.1).lines]
    assert kinds[-2:] == ["interrupted", "complete"]
    assert stage.until(10).words.endswith("I haven't booked anything yet. Shall I?")


def test_a_sentence_that_was_cut_off_is_taken_up_where_its_listener_was() -> None:
    stage = Stage()
    stage.model.prompt("What should I bring?", now=0)
    stage.until(2).model.cut_off(now=2)
    assert stage.model.next_at() is None
    assert not stage.model.speaking
    before = len(stage.words)

    stage.model.resumed(now=3)

    assert stage.until(50).lines[-1].endswith("complete")
    rest = stage.words[before:]
    assert rest == "an hour, and there is nothing to bring."
    assert "3.400 audio" in stage.lines


def test_some_sentences_that_were_cut_off_are_not_taken_up() -> None:
    stage = Stage(uniform=lambda _, high: high)
    stage.model.prompt("What should I bring?", now=0)
    stage.until(2).model.cut_off(now=2)
    stage.model.resumed(now=3)

    assert stage.model.next_at() is None
    assert stage.model.idle


def test_what_it_was_about_to_do_waits_for_a_connection() -> None:
    stage = Stage()
    stage.model.prompt(BOOK, now=0)
    stage.model.cut_off(now=0.1)
    assert stage.until(100).lines == []

    stage.model.resumed(now=100)

    assert stage.until(200).lines == ["100.000 call c1 tomorrow 3pm"]


def test_a_history_without_a_note_makes_it_call_anew_and_say_that_it_is_booking() -> None:
    stage = Stage()
    stage.model.history([user(BOOK)], now=0, answer=True)
    stage.until(0.8).model.respond([result("c1")], now=0.8)
    stage.until(50)

    assert stage.lines[0] == "0.700 call c1 tomorrow 3pm"
    assert stage.lines[1] == "0.900 audio"
    assert stage.words == (
        "I'm booking the 3 pm slot tomorrow for you now."
        "Done: the 3 pm slot tomorrow is booked. The confirmation is BK-1001."
    )


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        ("booked, confirmation_id BK-1001", "Done: the 3 pm slot tomorrow is booked. The confirmation is BK-1001."),
        ("still being processed", "The booking of the 3 pm slot tomorrow is still being processed."),
        ("failed, nothing was changed, error disk full", "Sorry, booking the 3 pm slot tomorrow failed."),
    ],
)
def test_a_history_with_a_note_makes_it_say_so_and_call_nothing(standing: str, words: str) -> None:
    stage = Stage()
    cut = said("It takes half an hour, and there [cut off here: the connection was lost]")
    stage.model.history([user(BOOK), user("What?"), cut, user(NOTE.format(standing))], now=0, answer=True)

    assert stage.until(50).words == words
    assert stage.lines[0] == "0.900 audio"
    assert not any("call" in line for line in stage.lines)


def test_a_later_note_replaces_what_the_first_one_said() -> None:
    stage = Stage()
    stage.model.history([user(BOOK), user(NOTE.format("still being processed"))], now=0, answer=True)
    stage.until(20).model.history([user(UPDATE.format("booked, confirmation_id BK-7"))], now=20, answer=True)
    stage.until(40).model.prompt(ASK, now=40)

    assert stage.until(60).words.endswith(
        "Done: the 3 pm slot tomorrow is booked. The confirmation is BK-7."
        "Yes, the 3 pm slot tomorrow is booked. The confirmation is BK-7."
    )


def test_a_note_that_knows_of_nothing_leaves_the_request_open() -> None:
    stage = Stage()
    note = NOTE.replace("- book_slot (slot: tomorrow 3pm): {}", "No action was under way or was finished lately.")
    stage.model.history([user(BOOK), user(note)], now=0, answer=True)

    assert stage.until(1).lines[0] == "0.700 call c1 tomorrow 3pm"


def test_a_request_that_the_model_settled_is_not_open() -> None:
    stage = Stage()
    settled = said("Done: the 3 pm slot tomorrow is booked.")
    stage.model.history([user(BOOK), settled, user("thank you")], now=0, answer=True)

    assert stage.until(20).words == "You are welcome. Goodbye."


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        ("No action was under way or was finished lately.", "Yes, the 3 pm slot tomorrow is booked."),
        ("- book_slot (slot: tomorrow 3pm): failed", "No, booking the 3 pm slot tomorrow failed."),
    ],
)
def test_what_it_said_in_a_restored_history_it_believes_and_a_note_overrules_it(standing: str, words: str) -> None:
    stage = Stage()
    settled = said("Done: the 3 pm slot tomorrow is booked.")
    note = NOTE.replace("- book_slot (slot: tomorrow 3pm): {}", standing)
    stage.model.history([user(BOOK), settled, user(note)], now=0, answer=False)
    stage.model.prompt(ASK, now=1)

    assert stage.until(20).words == words


def test_a_note_that_asks_nothing_of_it_is_no_riddle() -> None:
    stage = Stage()
    note = NOTE.replace("- book_slot (slot: tomorrow 3pm): {}", "No action was under way or was finished lately.")
    stage.model.history([user("Hello?"), user(note)], now=0, answer=True)

    assert stage.until(20).words == "I am here. Please go on."


def test_a_history_is_only_read_until_its_turn_is_complete() -> None:
    stage = Stage()
    stage.model.history([user(BOOK), user(NOTE.format("booked"))], now=0, answer=False)
    stage.model.history([], now=0, answer=True)
    assert stage.model.next_at() is None

    stage.model.prompt(ASK, now=1)
    assert stage.until(20).words == "Yes, the 3 pm slot tomorrow is booked."


def test_a_typed_turn_is_answered_and_a_history_that_ends_with_the_model_too() -> None:
    stage = Stage()
    stage.model.history([user(ASK)], now=0, answer=True)
    stage.until(20).model.history([user("hello"), said("Yes?")], now=20, answer=True)

    assert stage.until(40).words == "I haven't booked anything yet. Shall I?I am here. Please go on."


def test_it_calls_only_what_the_setup_declared() -> None:
    stage = Stage(tools=["other"])
    stage.model.prompt(BOOK, now=0)
    stage.model.history([user(BOOK)], now=10, answer=True)

    assert stage.until(30).words == "I have no way to book from here." * 2
    assert not stage.model.pending


def test_it_does_not_call_again_for_the_slot_that_it_is_booking() -> None:
    stage = booked()
    stage.model.prompt(BOOK, now=1)
    stage.until(20).model.prompt("Book me the 10am slot on Monday", now=20)

    assert [line for line in stage.until(50).lines if "call" in line] == [
        "0.500 call c1 tomorrow 3pm",
        "20.500 call c2 monday 10am",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("book me something", "Which day and time shall I book for you?"),
        ("cancel it", "I haven't booked anything yet."),
        ("purple elephants", "Sorry, I did not understand that."),
        (" \n", ""),
    ],
)
def test_it_has_an_answer_to_whatever_is_said(text: str, words: str) -> None:
    stage = Stage()
    stage.model.prompt(text, now=0)

    assert stage.until(20).words == words


def test_it_cannot_cancel_a_booking() -> None:
    stage = booked()
    stage.model.prompt("cancel my booking", now=1)

    assert stage.until(20).words == "I can't cancel a booking from here."


def test_a_profile_says_how_fast_it_is() -> None:
    assert Manner.of(DEFAULT) == Manner()
    assert Manner.of(DEFAULT.with_(call_s=3.0)).call_s == (3.0, 3.0)


def test_declared_tools_are_read_in_both_spellings_and_nothing_else_is() -> None:
    tools: list[Json] = [
        {"functionDeclarations": [{"name": "book_slot"}, {"name": 7}, "x"]},
        {"function_declarations": [{"name": "other"}]},
        {"googleSearch": {}, "functionDeclarations": 7},
    ]

    assert declared(tools) == {"book_slot", "other"}


TEXTS = [BOOK, ASK, "hello", "what should i bring", "cancel it", "thanks", "book me the 10am slot on monday", "?", ""]

ACTIONS = st.one_of(
    st.tuples(st.just("prompt"), st.sampled_from(TEXTS)),
    st.tuples(st.just("type"), st.sampled_from(TEXTS)),
    st.tuples(st.just("note"), st.sampled_from(["booked", "still being processed", "failed"])),
    st.tuples(st.just("answer"), st.sampled_from(["booked", "pending", "failed"])),
    st.tuples(st.sampled_from(["interrupt", "cut off", "resume"]), st.just("")),
)

STEPS = st.lists(st.tuples(st.floats(0, 4), ACTIONS), max_size=12)


def act(stage: Stage, kind: str, what: str, now: float) -> None:
    model = stage.model
    match kind:
        case "prompt":
            model.prompt(what, now=now)
        case "type":
            model.history([user(what)], now=now, answer=True)
        case "note":
            model.history([user(BOOK), user(NOTE.format(what))], now=now, answer=True)
        case "answer":
            model.respond([result(call_id, status=what) for call_id in list(model.pending)[:1]], now=now)
        case "interrupt":
            model.interrupt(now=now)
        case "cut off":
            model.cut_off(now=now)
        case "resume":
            model.resumed(now=now)


def perform(steps: list[tuple[float, tuple[str, str]]], seed: int, *, eager: bool) -> list[str]:
    """All that comes, without its instants; eagerly woken, or only when something else happens."""
    stage, now = Stage(Manner(), uniform=seeded(seed)), 0.0
    lines: list[str] = []
    for after_s, (kind, what) in [*steps, (0, ("resume", "")), (1000, ("resume", "")), (1000, ("cut off", ""))]:
        now += after_s
        if eager:
            stage.until(now)
        else:
            stage.messages += [(now, message) for message in stage.model.wake(now=now)]
        act(stage, kind, what, now)
        lines += [line.split(maxsplit=1)[1] for line in stage.lines] + ["cut"] * (kind == "cut off")
        stage.messages.clear()
    assert stage.model.idle
    assert not stage.model.speaking
    return lines


@given(STEPS, st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_the_same_seed_gives_the_same_messages_however_often_it_is_woken(
    steps: list[tuple[float, tuple[str, str]]], seed: int
) -> None:
    assert perform(steps, seed, eager=True) == perform(steps, seed, eager=True)
    assert perform(steps, seed, eager=False) == perform(steps, seed, eager=True)


@given(STEPS, st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_every_turn_ends_as_generated_or_as_interrupted(steps: list[tuple[float, tuple[str, str]]], seed: int) -> None:
    lines = perform(steps, seed, eager=True)
    turn: list[str] = []
    for kind in (line.split()[0] for line in lines if not line.startswith("call")):
        turn = [] if kind == "cut" else [*turn, kind]
        if kind == "complete":
            end = turn[turn.index("interrupted" if "interrupted" in turn else "generated") :]
            assert end in (
                ["generated", "complete"],
                ["interrupted", "complete"],
                ["interrupted", "cancel", "complete"],
            )
            assert "interrupted" in turn or turn[0] == "audio"
            turn = []
    calls = [line.split()[1] for line in lines if line.startswith("call")]
    assert len(calls) == len(set(calls))
    assert turn == []


def test_the_call_comes_about_four_seconds_after_the_sessions_start() -> None:
    """Setup, the clip in real time, its end and its transcript, then the model's own time."""
    speech, clip = EndOfSpeech(), load("book")
    setup_s, transcript_s = sum(DEFAULT.setup_s) / 2, 0.1
    heard_s = next(number * CHUNK_S for number, chunk in enumerate(clip.chunks(), 1) if speech.feed(chunk))
    earliest, latest = (setup_s + heard_s + transcript_s + call_s for call_s in DEFAULT.call_s)

    assert earliest < 4.05 < latest


def test_an_urgent_result_interrupts_what_is_being_said() -> None:
    stage = booked()
    stage.model.prompt("What should I bring?", now=1)
    stage.until(2.2).model.respond([FunctionResponse("c1", TOOL, BOOKED, {"scheduling": "INTERRUPT"})], now=2.2)

    assert stage.until(2.81).lines[-4:] == ["2.200 interrupted", "2.200 complete", "2.800 audio", "2.800 words"]
