"""Silence, its direction, and what the sentences make of it, from scripts of one flow."""

import pytest

from lab.core.conversation import Conversation
from lab.core.diagnosis import diagnose
from lab.core.explanation import explanation
from lab.core.fault import Cut
from lab.core.icmp import IcmpMessage
from lab.core.segment_class import SegmentClass
from tests.core.script import CLIENT, HANDSHAKE, SERVER, segments

TALK = """
1.000 > P. 1(100) ack 1
1.010 < P. 1(200) ack 101
1.011 > . 101(0) ack 201
"""
BUSY = (
    HANDSHAKE
    + TALK
    + """
2.000 > P. 101(50) ack 201
2.220 > P. 101(50) ack 201
2.440 > P. 101(50) ack 201
2.880 > P. 101(50) ack 201
3.760 > P. 101(50) ack 201
"""
)


def follow(script: str, until: float | None = None) -> Conversation:
    parts = segments(script)
    flow = Conversation(parts[0])
    for segment in parts:
        flow.add(segment)
    flow.close(until or parts[-1].time_s)
    return flow


def text(flow: Conversation) -> str:
    return " ".join(diagnose(flow))


def test_a_flow_that_sends_into_nothing_is_silent_since_its_first_unanswered_send() -> None:
    flow = follow(BUSY)

    assert flow.silence is not None
    assert (flow.silence.since, flow.silence.healed_at, flow.silence.last_heard_at) == (2.0, None, 1.01)
    assert (flow.silence.direction, flow.silence.certain) == (Cut.BOTH, False)
    assert flow.ladder is not None
    assert flow.ladder.steps_s == pytest.approx((0.22, 0.44, 0.88))
    assert "server may have the data" in text(flow)


def test_a_silence_ends_with_the_first_answer() -> None:
    flow = follow(BUSY + "3.770 < . 201(0) ack 151\n4.0 > P. 151(10) ack 201\n4.01 < . 201(0) ack 161")

    assert flow.silence is not None
    assert flow.silence.healed_at == 3.77
    assert "healed after 1.77 s" in text(flow)


def test_one_timeout_that_is_answered_is_no_silence() -> None:
    flow = follow(HANDSHAKE + "1.0 > P. 1(9) ack 1\n1.22 > P. 1(9) ack 1\n1.44 > P. 1(9) ack 1\n1.45 < . 1(0) ack 10")

    assert flow.silence is None
    assert "2 copies (1 timeout-copy, 1 tail-loss-probe): ordinary loss" in text(flow)


@pytest.mark.parametrize(("until", "silent"), [(2.3, False), (9.0, True)])
def test_one_unanswered_copy_means_nothing_until_an_answer_could_have_come(until: float, silent: bool) -> None:
    flow = follow(HANDSHAKE + "1.000 > P. 1(9) ack 1\n2.200 > P. 1(9) ack 1", until)

    assert (flow.silence is not None) is silent


def test_only_the_return_direction_is_dead_where_answers_pass_here_and_are_not_heard() -> None:
    flow = follow(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.001 < . 1(0) ack 101
        1.220 > P. 1(100) ack 1
        1.221 < . 1(0) ack 101 sack 1-101
        1.440 > P. 1(100) ack 1
        1.441 < . 1(0) ack 101 sack 1-101
        1.880 > P. 1(100) ack 1
        1.881 < . 1(0) ack 101 sack 1-101
        """
    )

    assert flow.silence is not None
    assert (flow.silence.since, flow.silence.direction, flow.silence.certain) == (1.0, Cut.RETURN, True)
    assert "The server has the request, the client is not told." in text(flow)
    assert flow.classes == {SegmentClass.FIRST: 8, SegmentClass.SPURIOUS_COPY: 3}


def test_counts_follow_later_verdicts() -> None:
    flow = follow(HANDSHAKE + "1.0 > P. 1(9) ack 1\n1.22 > P. 1(9) ack 1\n1.23 < . 1(0) ack 10 sack 1-10")

    assert flow.classes == {SegmentClass.FIRST: 5, SegmentClass.SPURIOUS_COPY: 1}
    assert [copy.segment_class for copy in flow.copies] == [SegmentClass.SPURIOUS_COPY]


def test_a_needless_copy_keeps_its_place_in_the_ladder() -> None:
    flow = follow(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.001 < . 1(0) ack 101
        1.220 > P. 1(100) ack 1
        1.440 > P. 1(100) ack 1
        1.880 > P. 1(100) ack 1
        """
    )

    assert flow.ladder is not None
    assert flow.ladder.steps_s == pytest.approx((0.22, 0.44))


def test_only_the_forward_direction_is_dead_where_the_server_talks_on() -> None:
    flow = follow(BUSY + "4.000 < P. 201(10) ack 101\n5.520 > P. 101(50) ack 211")

    assert flow.silence is not None
    assert (flow.silence.direction, flow.silence.certain) == (Cut.FORWARD, True)
    assert "Only the forward direction was dead" in text(flow)


def test_both_directions_are_dead_where_each_side_repeats_itself_unheard() -> None:
    flow = follow(
        HANDSHAKE
        + TALK
        + """
        2.000 > P. 101(50) ack 201
        2.001 < P. 201(60) ack 101
        2.220 > P. 101(50) ack 201
        2.221 < P. 201(60) ack 101
        2.440 > P. 101(50) ack 201
        2.441 < P. 201(60) ack 101
        2.880 > P. 101(50) ack 201
        2.881 < P. 201(60) ack 101
        """
    )

    assert flow.silence is not None
    assert (flow.silence.since, flow.silence.direction, flow.silence.certain) == (2.0, Cut.BOTH, True)
    assert "neither hears the other" in text(flow)


def test_a_sender_that_goes_on_was_answered_although_the_answers_were_not_captured() -> None:
    flow = follow(
        """
        1.000 > P. 1(100) ack 1
        1.220 > P. 1(100) ack 1
        1.440 > P. 1(100) ack 1
        1.880 > P. 1(100) ack 1
        2.000 > P. 101(100) ack 70
        """,
        until=60,
    )

    assert flow.silence is not None
    assert flow.silence.healed_at == 2.0


def test_a_keepalive_death() -> None:
    flow = follow(
        HANDSHAKE
        + TALK
        + "11.1 > . 100(0) ack 201\n16.1 > . 100(0) ack 201\n21.1 > . 100(0) ack 201\n26.1 > R. 101(0) ack 201"
    )

    assert flow.silence is not None
    assert (flow.silence.since, flow.silence.last_heard_at) == (11.1, 1.01)
    assert [mark.time_s for mark in flow.rst] == [26.1]
    assert "3 keepalive probes of the client went unanswered, then the client reset it" in text(flow)
    assert flow.ladder is None


def test_answered_keepalives_are_a_sign_of_life() -> None:
    flow = follow(HANDSHAKE + TALK + "11.1 > . 100(0) ack 201\n11.11 < . 201(0) ack 101")

    assert flow.silence is None
    assert "1 keepalive probe answered: idle, and alive." in text(flow)


ZERO_WINDOW = (
    HANDSHAKE
    + """
    1.000 > P. 1(100) ack 1
    1.010 < . 1(0) ack 101 win 0
    1.220 > . 100(0) ack 1
    1.230 < . 1(0) ack 101 win 0
    1.640 > . 100(0) ack 1
    2.480 > . 100(0) ack 1
    2.490 < . 1(0) ack 101 win 0
    """
)


def test_a_closed_window_with_a_live_peer_is_no_loss() -> None:
    flow = follow(ZERO_WINDOW)

    assert flow.silence is None
    assert "back pressure, not loss" in text(flow)
    assert flow.ladder is not None
    assert flow.ladder.of is SegmentClass.WINDOW_PROBE
    assert flow.ladder.steps_s == pytest.approx((0.21, 0.42, 0.84))


def test_a_closed_window_and_then_darkness() -> None:
    flow = follow(ZERO_WINDOW + "4.16 > . 100(0) ack 1\n7.52 > . 100(0) ack 1")

    assert flow.silence is not None
    assert flow.silence.since == 4.16
    assert "window probes went unanswered" in text(flow)


def test_an_unanswered_connect() -> None:
    flow = follow("0.0 > S 0(0)\n1.0 > S 0(0)\n3.0 > S 0(0)")

    assert flow.silence is not None
    assert (flow.silence.since, flow.silence.last_heard_at) == (0.0, None)
    assert "3 SYNs and no answer" in text(flow)


def test_a_connect_that_is_answered_at_last() -> None:
    flow = follow("0.0 > S 0(0)\n1.0 > S 0(0)\n3.0 > S 0(0)\n3.1 < S. 0(0) ack 1\n3.2 > . 1(0) ack 1")

    assert flow.silence is not None
    assert flow.silence.healed_at == 3.1
    assert "of 3 SYNs only the last was answered" in text(flow)


@pytest.mark.parametrize(("closing", "state"), [("1.5 < F. 201(0) ack 101", "LAST_ACK"), ("", "FIN_WAIT1")])
def test_an_orphan_resends_its_fin_eight_times(closing: str, state: str) -> None:
    ack = 202 if closing else 201
    fins = "\n".join(f"{at} > F. 101(0) ack {ack}" for at in (2, 2.22, 2.66, 3.54, 5.3, 8.82, 15.9, 30.0, 58.2))
    flow = follow(HANDSHAKE + TALK + closing + "\n" + fins)

    assert f"in {state}, resent its FIN 8 times" in text(flow)
    assert "tcp_orphan_retries" in text(flow)


def test_icmp_makes_it_loud_and_undoes_the_back_off() -> None:
    parts = segments(BUSY)
    flow = Conversation(parts[0])
    for segment in parts:
        flow.add(segment)
        if segment.time_s > 2:
            flow.add_icmp(IcmpMessage(segment.time_s, "192.0.2.254", False, 3, 1, CLIENT, SERVER, segment.seq))
    flow.close(9)

    assert flow.icmp == {"host unreachable, from 192.0.2.254": 4}
    assert "no silent blackhole" in text(flow)
    assert "Most likely a blackhole" not in text(flow)


def test_an_open_flow_without_loss_is_not_declared_healthy_beyond_what_is_seen() -> None:
    said = diagnose(follow(HANDSHAKE + TALK))

    assert said[0] == "Nothing was lost as far as this capture shows."
    assert "OUTPUT chain" in said[1]


def test_a_reset_in_the_middle_that_nobody_obeyed() -> None:
    flow = follow(HANDSHAKE + "0.5 > R. 1(0) ack 1\n" + TALK + "9.0 > P. 101(9) ack 201\n9.1 < . 201(0) ack 110")

    assert "did not end the flow" in text(flow)


def test_the_object_keeps_its_contract() -> None:
    found = explanation(follow(BUSY), origin=-1.0)

    assert found["client"] == "192.0.2.1:40000"
    assert found["server"] == "198.51.100.1:5000"
    assert found["assumed"] is False
    assert found["silence"]["since_s"] == 3.0
    assert found["silence"]["direction"] == "both"
    assert found["silence"]["healed_s"] is None
    assert found["copies"][0] == {
        "time_s": 3.22,
        "direction": "forward",
        "class": "tail-loss-probe",
        "trigger": "probe",
        "seq": 101,
        "length": 50,
    }
    assert found["ladder"]["steps_s"] == [0.22, 0.44, 0.88]
    assert found["ladder"]["cap_s"] is None
    assert found["last_copy_s"] == 4.76
    assert (found["rst"], found["fin"]) == ([], [])
    assert all(isinstance(sentence, str) for sentence in found["diagnosis"])


def test_the_client_is_assumed_without_a_handshake() -> None:
    found = explanation(follow("1.0 < P. 1(10) ack 1\n1.1 > . 1(0) ack 11"), origin=1.0)

    assert found["assumed"] is True
    assert found["client"] == "192.0.2.1:40000"
