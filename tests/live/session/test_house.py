"""A server's sessions as scripts: what comes in at which instant, and all that goes out."""

import dataclasses

import pytest

from lab.live.protocol.closing import INTERNAL_ERROR, INVALID_ARGUMENT
from lab.live.protocol.messages import Blob, RealtimeInput, Setup
from lab.live.session.commands import Audit, Close, Send
from lab.live.session.profile import DEFAULT, PROFILES, find
from lab.live.session.states import Detach
from tests.live.session.playbook import Stage, play

BEGUN = """
    0     open 1
    0     setup 1
    0.25  > 1 setupComplete session-1
    0.25  > 1 handle h1
"""

CALLED = (
    BEGUN
    + """
    1     type 1 book
    2     > 1 call c1
"""
)

SPEAKING = (
    BEGUN
    + """
    1     type 1 hello
    2     > 1 says one
    3     > 1 says two
"""
)


def test_setup_complete_comes_first_and_one_handle_after_it() -> None:
    play(CALLED + "3 result 1 c1\n4 > 1 says one\n5 > 1 says two\n7 > 1 turn_complete\n60 wake")


def test_who_asks_for_no_handle_gets_none() -> None:
    play("0 open 1\n0 setup 1 no\n0.25 > 1 setupComplete session-1\n10 wake")


def test_what_the_model_says_before_setup_complete_waits_for_it() -> None:
    play(
        """
        0     open 1
        0     setup 1
        0     type 1 book
        1.25  > 1 setupComplete session-1
        1.25  > 1 handle h1
        1.25  > 1 call c1
        """,
        DEFAULT.with_(setup_s=1.25),
    )


@pytest.mark.parametrize("how", [Detach.CLOSE_FRAME, Detach.FIN, Detach.RST])
def test_after_an_idle_end_a_resume_is_refused_at_once_and_accepted_once_settled(how: Detach) -> None:
    play(
        CALLED
        + f"""
        3     gone 1 {how.value}
        3     open 2
        3     setup 2 h1
        3.47  > 2 close 1011
        4.1   open 3
        4.1   setup 3 h1
        4.6   > 3 setupComplete session-1
        4.6   > 3 handle h2
        5     result 3 c1
        6     > 3 says one
        """
    )


@pytest.mark.parametrize("how", [Detach.CLOSE_FRAME, Detach.FIN, Detach.RST])
def test_with_the_model_speaking_the_immediate_resume_works_and_the_sentence_is_taken_up(how: Detach) -> None:
    stage = play(
        SPEAKING
        + f"""
        3.5   gone 1 {how.value}
        3.5   open 2
        3.5   setup 2 h1
        4     > 2 setupComplete session-1
        4     > 2 handle h2
        5     > 2 says one
        """
    )

    assert [told[0] for told in stage.models[0].told] == ["prompt", "cut off", "resumed"]


def test_the_lock_is_decided_when_the_setup_arrives() -> None:
    play(
        CALLED
        + """
        3     gone 1 FIN
        3.9   open 2
        3.9   setup 2 h1
        4.37  > 2 close 1011
        4.37  open 3
        4.37  setup 3 h1
        4.87  > 3 setupComplete session-1
        4.87  > 3 handle h2
        """
    )


def test_a_session_that_lost_its_path_refuses_until_its_client_closes_the_old_connection() -> None:
    refused = "".join(
        f"{at} open {at}\n{at} setup {at} h1\n{at + 0.47} > {at} close 1011\n" for at in range(5, 400, 10)
    )

    play(
        CALLED
        + refused
        + """
        400   gone 1 close frame
        400   open 2
        400   setup 2 h1
        400.5 > 2 setupComplete session-1
        400.5 > 2 handle h2
        401   result 2 c1
        402   > 2 says one
        """
    )


def test_a_fin_settles_even_where_a_resume_was_refused() -> None:
    play(
        CALLED
        + """
        3     open 2
        3     setup 2 h1
        3.47  > 2 close 1011
        5     gone 1 FIN
        5     open 3
        5     setup 3 h1
        5.47  > 3 close 1011
        """
    )


def test_a_refusal_of_an_earlier_connection_frees_no_later_one() -> None:
    play(
        CALLED
        + """
        3     open 2
        3     setup 2 h1
        3.47  > 2 close 1011
        4     gone 1 close frame
        4     open 3
        4     setup 3 h1
        4.5   > 3 setupComplete session-1
        4.5   > 3 handle h2
        6     gone 3 close frame
        6     open 4
        6     setup 4 h2
        6.47  > 4 close 1011
        """
    )


@pytest.mark.parametrize("how", [Detach.TCP_TIMEOUT, Detach.NOTHING])
@pytest.mark.parametrize("begun", [CALLED, SPEAKING])
def test_a_connection_that_is_gone_without_a_sign_unlocks_nothing_and_its_handle_dies_of_silence(
    how: Detach, begun: str
) -> None:
    stage = play(
        begun
        + f"""
        3     gone 1 {how.value}
        470   open 2
        470   setup 2 h1
        470.47 > 2 close 1011
        900   open 3
        900   setup 3 h1
        900.47 > 3 close 1011
        """
    )

    assert [fields["cause"] for fields in stage.told(Audit.REFUSED)] == ["held", "unknown"]


def test_silence_closes_after_480_s_and_the_handle_is_dead_for_good() -> None:
    stage = play(
        CALLED
        + """
        482   > 1 close 1011
        483   open 2
        483   setup 2 h1
        483.47 > 2 close 1011
        490   gone 1 close frame
        491   open 3
        491   setup 3 h1
        491.47 > 3 close 1011
        """
    )

    assert [fields["cause"] for fields in stage.told(Audit.REFUSED)] == ["dead", "unknown"]


def test_any_message_in_either_direction_puts_the_silence_close_off() -> None:
    play(CALLED + "100 audio 1 0000\n580 > 1 close 1011")


def test_a_dead_and_an_unknown_handle_are_refused_alike() -> None:
    for name, code in (("gemini-3.8-live-2026-10", 1011), ("dead-handle-1007", 1007)):
        play(
            CALLED
            + f"""
            482   > 1 close 1011
            483   open 2
            483   setup 2 h1
            483   open 3
            483   setup 3 nobody
            483.47 > 2 close {code}
            483.47 > 3 close {code}
            """,
            find(name),
        )


def test_a_locked_handle_is_refused_with_1011_in_every_profile() -> None:
    for profile in PROFILES.values():
        stage = Stage(profile)
        for line in ("open 1", "setup 1", "open 2"):
            stage.do(line)
        stage.until(1.0)
        stage.do("setup 2 h1")
        stage.until(2.0)

        assert stage.out[-1] == "1.47 > 2 close 1011"


def test_of_two_connections_that_race_for_a_handle_the_first_setup_wins() -> None:
    play(
        CALLED
        + """
        3     gone 1 FIN
        5     open 2
        5     open 3
        5     setup 3 h1
        5     setup 2 h1
        5.47  > 2 close 1011
        5.5   > 3 setupComplete session-1
        5.5   > 3 handle h2
        """
    )


def test_every_handle_of_a_session_names_it() -> None:
    play(
        CALLED
        + """
        3     gone 1 FIN
        5     open 2
        5     setup 2 h1
        5.5   > 2 setupComplete session-1
        5.5   > 2 handle h2
        6     gone 2 FIN
        8     open 3
        8     setup 3 h1
        8.5   > 3 setupComplete session-1
        8.5   > 3 handle h3
        """
    )


def test_a_second_setup_an_early_message_and_a_wrong_rate_are_invalid_arguments() -> None:
    stage = play(
        BEGUN
        + """
        1     setup 1
        1     > 1 close 1007
        2     open 2
        2     type 2 hello
        2     > 2 close 1007
        3     open 3
        3     setup 3
        3     audio 3 0000 audio/pcm;rate=44100
        3     > 3 close 1007
        """
    )

    assert {fields["reason"] for fields in stage.told(Audit.CLOSED)} == {INVALID_ARGUMENT.reason}


def test_a_malformed_frame_closes_with_its_own_sentence() -> None:
    stage = play("0 open 1\n0 malformed 1\n0 > 1 close 1007\n0 malformed 1")

    assert [fields["reason"] for fields in stage.told(Audit.CLOSED)] == ["No such field."]


def test_what_comes_after_the_servers_close_is_not_read() -> None:
    stage = play(BEGUN + "1 setup 1\n1 > 1 close 1007\n2 type 1 book\n3 malformed 1\n5 wake")

    assert stage.models[0].told == [("cut off", 1.0)]


def test_what_comes_after_a_refused_setup_is_not_read() -> None:
    play(BEGUN + "1 open 2\n1 setup 2 h1\n1.1 type 2 book\n1.2 malformed 2\n1.47 > 2 close 1011\n4 wake")


def test_a_session_whose_connection_the_server_closed_is_free_once_that_is_answered() -> None:
    play(
        CALLED
        + """
        3     setup 1
        3     > 1 close 1007
        3     open 2
        3     setup 2 h1
        3.47  > 2 close 1011
        4     gone 1 close frame
        4     open 3
        4     setup 3 h1
        4.5   > 3 setupComplete session-1
        4.5   > 3 handle h2
        """
    )


def test_a_call_that_falls_between_the_servers_close_and_its_answer_waits_for_the_next_connection() -> None:
    play(
        BEGUN
        + """
        1     type 1 book
        1.5   close session-1
        1.5   > 1 close 1000
        2.5   gone 1 close frame
        3     open 2
        3     setup 2 h1
        3.5   > 2 setupComplete session-1
        3.5   > 2 handle h2
        3.5   > 2 call c1
        """
    )


def test_an_unanswered_close_of_the_server_holds_the_session_until_its_silence_ends_it() -> None:
    stage = play(CALLED + "3 close session-1\n3 > 1 close 1000\n13 gone 1 nothing\n400 open 2")

    assert stage.house.status(now=400).sessions[0].state == "held"
    stage.until(482)
    assert stage.house.status(now=482).sessions[0].state == "dead"


def test_go_away_is_followed_by_1008_for_who_stays() -> None:
    play(
        BEGUN + "5.25 > 1 goAway 2\n7.25 > 1 close 1008\n8 gone 1 close frame",
        DEFAULT.with_(go_away_after_s=5, go_away_time_left_s=2),
    )


def test_who_leaves_after_go_away_can_resume_and_gets_another_one_in_time() -> None:
    play(
        BEGUN
        + """
        5.25  > 1 goAway 2
        6     gone 1 close frame
        7.1   open 2
        7.1   setup 2 h1
        7.6   > 2 setupComplete session-1
        7.6   > 2 handle h2
        12.6  > 2 goAway 2
        """,
        DEFAULT.with_(go_away_after_s=5, go_away_time_left_s=2),
    )


def test_many_handles_come_after_turns_and_none_while_a_call_is_pending() -> None:
    play(
        CALLED
        + """
        2     > 1 not resumable
        3     result 1 c1
        4     > 1 says one
        5     > 1 says two
        7     > 1 turn_complete
        7     > 1 handle h2
        """,
        find("many-handles"),
    )


def test_a_result_for_a_call_of_a_former_connection_is_dropped_where_the_profile_says_so() -> None:
    stage = play(
        CALLED
        + """
        3     gone 1 FIN
        5     open 2
        5     setup 2 h1
        5.5   > 2 setupComplete session-1
        5.5   > 2 handle h2
        6     result 2 c1
        7     type 2 book
        8     > 2 call c2
        9     result 2 c2
        10    > 2 says one
        """,
        find("old-call-ignored"),
    )

    assert stage.told(Audit.OLD_RESULT)[0]["ids"] == ["c1"]
    assert "c1" in stage.models[0].pending


def test_a_result_for_an_unknown_call_is_noted_and_closes_only_where_the_profile_says_so() -> None:
    quiet = play(CALLED + "3 result 1 c7")
    play(CALLED + "3 result 1 c7\n3 > 1 close 1007", DEFAULT.with_(unknown_result="close"))

    assert [fields["ids"] for fields in quiet.told(Audit.UNKNOWN_RESULT)] == [["c7"]]


def test_calls_are_cancelled_by_an_interruption_only() -> None:
    play(
        CALLED
        + """
        3     type 1 hello
        4     > 1 says one
        4.5   heard session-1 stop
        4.5   > 1 cancels c1 interrupted
        """
    )


def test_what_the_model_is_about_to_say_to_nobody_waits_for_the_next_connection() -> None:
    stage = play(
        BEGUN
        + """
        1     type 1 hello
        1.5   gone 1 FIN
        3     open 2
        3     setup 2 h1
        3.5   > 2 setupComplete session-1
        3.5   > 2 handle h2
        3.5   > 2 says one
        3.5   > 2 says two
        5     > 2 turn_complete
        """
    )

    turns = stage.house.status(now=10).sessions[0].transcript
    assert [(turn.role, turn.text, turn.complete) for turn in turns] == [
        ("user", "hello", True),
        ("model", "one two", True),
    ]
    assert stage.told(Audit.UNSENT) == []


def test_a_call_that_waits_for_a_setup_that_never_completes_is_made_on_the_next_connection() -> None:
    play(
        BEGUN
        + """
        1     gone 1 FIN
        3     open 2
        3     setup 2 h1
        3     type 2 book
        4.5   gone 2 FIN
        6     open 3
        6     setup 3 h1
        8     > 3 setupComplete session-1
        8     > 3 handle h2
        8     > 3 call c1
        """,
        DEFAULT.with_(resume_setup_s=2),
    )


def test_nothing_is_to_be_sent_to_a_connection_that_is_reported_gone() -> None:
    """The report comes when setupComplete was long due: the house was not woken in between."""
    stage = Stage()
    for line in ("open 1", "setup 1"):
        stage.do(line)
    commands = stage.house.detach(1, Detach.FIN, now=1)

    assert [command for command in commands if isinstance(command, Send | Close)] == []


def test_speech_recognised_after_the_loss_still_reaches_the_model() -> None:
    stage = play(BEGUN + "1 audio 1 01010000\n1 audio 1 00000000\n1 recognise session-1 0101\n2 gone 1 FIN")
    stage.do("heard session-1 book")

    assert stage.models[0].told[-1] == ("prompt", "book")


def test_a_dead_session_hears_nothing_more() -> None:
    stage = play(BEGUN + "480.25 > 1 close 1011\n481 heard session-1 book\n490 wake")

    assert stage.models[0].told == [("cut off", 480.25)]


def test_the_limit_counts_sessions_that_lost_their_client_unnoticed() -> None:
    stage = play(
        CALLED
        + """
        3     gone 1 TCP timeout
        4     open 2
        4     setup 2
        4.47  > 2 close 1011
        482   open 3
        482   setup 3
        482.25 > 3 setupComplete session-2
        482.25 > 3 handle h2
        """,
        DEFAULT.with_(concurrent_limit=1),
    )

    (refused,) = stage.told(Audit.REFUSED)
    assert refused["cause"] == "limit"
    assert str(refused["reason"]).startswith("RESOURCE_EXHAUSTED")


def test_a_free_session_does_not_count_and_needs_a_place_to_come_back() -> None:
    stage = play(
        BEGUN
        + """
        1     gone 1 FIN
        3     open 2
        3     setup 2
        3.25  > 2 setupComplete session-2
        3.25  > 2 handle h2
        4     open 3
        4     setup 3 h1
        4.47  > 3 close 1011
        5     gone 2 FIN
        6     open 4
        6     setup 4 h1
        6.5   > 4 setupComplete session-1
        6.5   > 4 handle h3
        """,
        DEFAULT.with_(concurrent_limit=1),
    )

    assert [fields["cause"] for fields in stage.told(Audit.REFUSED)] == ["limit"]


def test_a_limit_at_the_upgrade_turns_away_before_there_is_a_connection() -> None:
    stage = play(BEGUN, DEFAULT.with_(concurrent_limit=1, limit_refusal="429"))

    assert not stage.house.admits()
    assert stage.house.status(now=1).refused["limit"] == 1
    assert play(BEGUN, DEFAULT.with_(concurrent_limit=1)).house.admits(), "this one speaks after the setup"


def test_a_session_without_a_handle_ends_with_its_connection() -> None:
    stage = play("0 open 1\n0 setup 1 no\n0.25 > 1 setupComplete session-1\n1 gone 1 FIN")

    assert stage.house.status(now=1).sessions[0].state == "ended"
    assert stage.house.next_at() is None


def test_a_client_that_leaves_before_its_setup_is_complete_leaves_nothing() -> None:
    stage = play("0 open 1\n0 setup 1\n0.1 gone 1 RST\n5 wake")

    assert stage.house.status(now=5).counted == 0
    assert stage.house.next_at() is None


def test_a_client_that_leaves_before_a_resume_is_complete_can_try_again() -> None:
    play(
        CALLED
        + """
        3     gone 1 FIN
        5     open 2
        5     setup 2 h1
        5.1   gone 2 RST
        6.2   open 3
        6.2   setup 3 h1
        6.7   > 3 setupComplete session-1
        6.7   > 3 handle h2
        """
    )


def test_a_connection_that_never_says_what_it_wants_is_closed() -> None:
    play("0 open 1\n480 > 1 close 1011\n500 wake")


def test_a_handle_expires_two_hours_after_its_connection() -> None:
    stage = play(BEGUN + "1 gone 1 FIN\n7202 open 2\n7202 setup 2 h1\n7202.47 > 2 close 1011")

    assert [fields["cause"] for fields in stage.told(Audit.REFUSED)] == ["unknown"]


def test_a_dismissed_session_is_over_whatever_its_state() -> None:
    stage = play(CALLED + "3 dismiss session-1\n3 > 1 close 1000\n4 gone 1 close frame")

    assert stage.house.status(now=4).sessions[0].state == "ended"
    with pytest.raises(KeyError):
        stage.do("dismiss session-1")


def test_what_is_due_is_done_before_what_comes_in_even_if_nobody_woke_the_house() -> None:
    stage = play(BEGUN + "1 gone 1 FIN")
    stage.house.opened(2, now=2.5)

    commands = stage.house.receive(2, Setup("m", session_resumption=None), now=2.5)

    assert [session.state for session in stage.house.status(now=2.5).sessions] == ["free", "attached"]
    assert not [command for command in commands if isinstance(command, Send | Close)]


def test_the_refusal_carries_the_studys_sentence() -> None:
    stage = play(BEGUN)
    stage.do("open 2")
    stage.do("setup 2 h1")

    commands = stage.house.wake(now=2)

    assert Close(2, 1011, INTERNAL_ERROR.reason) in commands
    assert INTERNAL_ERROR.reason == "Internal error encountered."


def test_the_status_shows_locks_counts_calls_and_the_audio_clock_and_no_whole_handle() -> None:
    stage = play(CALLED)
    stage.house.receive(1, RealtimeInput(audio=Blob(bytes(32_000), "audio/pcm")), now=3)
    status = stage.house.status(now=5)

    (session,) = status.sessions
    assert (status.counted, status.limit, status.connections) == (1, None, 1)
    assert (session.state, session.locked, session.connection, session.audio_s) == ("attached", True, 1, 1.0)
    assert [(call.id, call.name) for call in session.pending] == [("c1", "book_slot")]
    assert (session.silent_s, session.closes_in_s) == (2, 478)
    assert dataclasses.asdict(status)["sessions"][0]["transcript"][0]["text"] == "book"


def test_a_number_is_open_once() -> None:
    stage = play("0 open 1")

    with pytest.raises(ValueError, match="open already"):
        stage.do("open 1")


def test_a_wake_for_a_few_leaves_the_others_due() -> None:
    stage = play("".join(f"0 open {n}\n0 setup {n} no\n" for n in (1, 2, 3)))

    def told(most: int) -> list[int]:
        return [each.connection for each in stage.house.wake(now=1, most=most) if isinstance(each, Send)]

    assert told(2) == [1, 2]
    assert stage.house.next_at() == 0.25, "in the past: whoever woke it comes again at once"
    assert told(2) == [3]
    assert (stage.house.next_at() or 0) > 1
