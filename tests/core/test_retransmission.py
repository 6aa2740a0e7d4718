"""Classes of segments, each rule as a script; see ``script.py`` for the notation."""

import pytest

from lab.core.flow import FourTuple
from lab.core.retransmission import FlowClassifier, SegmentClass, Trigger, classify, flow_of
from tests.core.script import CLIENT, FLOW, HANDSHAKE, SERVER, check, segments

NEAR_WRAP = (2**32 - 150, 2**32 - 3)


@pytest.mark.parametrize("isn", [(1000, 5000), NEAR_WRAP], ids=["plain", "wrapping"])
def test_a_lone_segment_in_a_hole_is_probed_and_then_backed_off(isn: tuple[int, int]) -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.010 < . 1(0) ack 101
        2.000 > P. 101(100) ack 1
        2.220 > P. 101(100) ack 1   # tail-loss-probe
        2.440 > P. 101(100) ack 1   # timeout-copy
        2.860 > P. 101(100) ack 1   # timeout-copy
        3.700 > P. 101(100) ack 1   # timeout-copy
        """,
        isn,
    )


def test_a_first_copy_after_which_the_timer_has_doubled_was_a_timeout() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.220 > P. 1(100) ack 1     # timeout-copy
        1.660 > P. 1(100) ack 1     # timeout-copy
        """
    )


def test_an_old_initial_timer_of_three_seconds_is_no_probe() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        4.000 > P. 1(100) ack 1     # timeout-copy
        10.00 > P. 1(100) ack 1     # timeout-copy
        """
    )


def test_the_tail_of_a_flight_is_probed_and_its_head_resent_by_timeout() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1448) ack 1
        1.000 > . 1449(1448) ack 1
        1.000 > P. 2897(1448) ack 1
        1.025 > P. 2897(1448) ack 1   # tail-loss-probe
        1.240 > . 1(1448) ack 1       # timeout-copy
        1.660 > . 1(1448) ack 1       # timeout-copy
        """
    )


def test_a_probe_with_new_data_is_a_first_sending() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(1448) ack 1
        1.025 > P. 1449(1448) ack 1
        1.240 > P. 1(1448) ack 1      # timeout-copy
        """
    )


def test_a_copy_of_a_part_of_an_offloaded_segment_is_a_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(65160) ack 1
        1.025 > P. 63713(1448) ack 1  # tail-loss-probe
        1.240 > . 1(1448) ack 1       # timeout-copy
        1.660 > . 1(1448) ack 1       # timeout-copy
        1.670 < . 1(0) ack 1449
        1.671 > . 1449(1448) ack 1    # timeout-copy
        """
    )


def test_a_copy_that_carries_new_data_too_is_a_copy() -> None:
    found = classify(
        segments(
            HANDSHAKE
            + """
            1.000 > P. 1(100) ack 1
            1.220 > P. 1(300) ack 1
            1.230 < . 1(0) ack 301
            1.300 > P. 301(100) ack 1
            """
        )
    )

    assert [c.segment_class for c in found[4:]] == [
        SegmentClass.TAIL_LOSS_PROBE,
        SegmentClass.FIRST,
        SegmentClass.FIRST,
    ]


def test_copies_after_sack_blocks_and_duplicate_acknowledgments_are_fast() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 1001(1000) ack 1
        1.000 > . 2001(1000) ack 1
        1.000 > . 3001(1000) ack 1
        1.010 < . 1(0) ack 1 sack 1001-2001
        1.010 < . 1(0) ack 1 sack 1001-3001
        1.010 < . 1(0) ack 1 sack 1001-4001
        1.011 > . 1(1000) ack 1       # fast-copy
        1.021 < . 1(0) ack 4001
        """
    )


def test_three_duplicate_acknowledgments_without_sack_are_enough() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 1001(1000) ack 1
        1.010 < . 1(0) ack 1
        1.010 < . 1(0) ack 1
        1.010 < . 1(0) ack 1
        1.011 > . 1(1000) ack 1       # fast-copy
        """
    )


def test_a_timer_that_fires_long_after_the_duplicate_acknowledgments_is_a_timeout() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 1001(1000) ack 1
        1.010 < . 1(0) ack 1 sack 1001-2001
        1.012 > . 1(1000) ack 1       # fast-copy
        1.250 > . 1(1000) ack 1       # timeout-copy
        """
    )


def test_a_partial_acknowledgment_in_fast_recovery_calls_for_the_next_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 1001(1000) ack 1
        1.000 > . 2001(1000) ack 1
        1.010 < . 1(0) ack 1 sack 2001-3001
        1.012 > . 1(1000) ack 1       # fast-copy
        1.022 < . 1(0) ack 1001 sack 2001-3001
        1.023 > . 1001(1000) ack 1    # fast-copy
        """
    )


def test_reordered_data_is_no_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.0000 > . 1(1000) ack 1
        1.0001 > . 2001(1000) ack 1
        1.0002 > . 1001(1000) ack 1
        1.0100 < . 1(0) ack 3001
        """
    )


def test_reordered_data_is_no_copy_however_late_where_its_timestamp_is_older() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1 ts 1000
        1.000 > . 2001(1000) ack 1 ts 1002
        1.010 < . 1(0) ack 1001 sack 2001-3001
        1.010 < . 1(0) ack 1001 sack 2001-3001
        1.010 < . 1(0) ack 1001 sack 2001-3001
        1.050 > . 1001(1000) ack 1 ts 1001
        """
    )


def test_a_copy_is_known_although_its_first_sending_is_missing_in_the_capture() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1 ts 1000
        1.000 > . 2001(1000) ack 1 ts 1000
        1.010 < . 1(0) ack 1001 sack 2001-3001
        1.012 > . 1001(1000) ack 1 ts 1012    # fast-copy
        """
    )


def test_data_that_was_acknowledged_unseen_and_comes_later_is_a_needless_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 2001(1000) ack 1
        1.010 < . 1(0) ack 3001
        1.300 > . 1001(1000) ack 1    # spurious-copy
        """
    )


def test_a_copy_of_what_was_acknowledged_is_needless() -> None:
    found = classify(
        segments(
            HANDSHAKE
            + """
            1.000 > P. 1(100) ack 1
            1.010 < . 1(0) ack 101
            1.220 > P. 1(100) ack 1
            1.440 > P. 1(100) ack 1
            1.860 > P. 1(100) ack 1
            """
        )
    )

    copies = found[5:]
    assert {c.segment_class for c in copies} == {SegmentClass.SPURIOUS_COPY}
    assert [c.trigger for c in copies] == [Trigger.PROBE, Trigger.TIMEOUT, Trigger.TIMEOUT]
    assert all(c.needless for c in copies)


def test_a_dsack_proves_one_copy_needless() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.220 > P. 1(100) ack 1       # tail-loss-probe
        1.440 > P. 1(100) ack 1       # spurious-copy
        1.450 < . 1(0) ack 101 sack 1-101
        """
    )


def test_a_sack_block_of_received_data_is_no_dsack() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > . 1(1000) ack 1
        1.000 > . 1001(1000) ack 1
        1.240 > . 1(1000) ack 1       # timeout-copy
        1.250 < . 1(0) ack 1 sack 1001-2001
        """
    )


@pytest.mark.parametrize("length", [0, 1])
def test_keepalive_probes_repeat_what_was_acknowledged_on_an_idle_flow(length: int) -> None:
    check(
        HANDSHAKE
        + f"""
        1.000 > P. 1(100) ack 1
        1.010 < . 1(0) ack 101
        11.00 > . 100({length}) ack 1       # keepalive-probe
        11.01 < . 1(0) ack 101
        21.00 > . 100({length}) ack 1       # keepalive-probe
        26.00 > . 100({length}) ack 1       # keepalive-probe
        31.00 > R. 101(0) ack 1
        """
    )


def test_a_one_octet_message_in_flight_is_resent_not_kept_alive() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(1) ack 1
        1.220 > P. 1(1) ack 1         # tail-loss-probe
        1.440 > P. 1(1) ack 1         # timeout-copy
        """
    )


def test_a_one_octet_message_whose_acknowledgment_does_not_get_back_is_resent_not_kept_alive() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(1) ack 1
        1.010 < . 1(0) ack 2
        1.220 > P. 1(1) ack 1         # spurious-copy
        1.440 > P. 1(1) ack 1         # spurious-copy
        3.440 > P. 1(1) ack 1         # spurious-copy
        """
    )


def test_an_overtaken_acknowledgment_is_no_keepalive() -> None:
    check(
        HANDSHAKE
        + """
        1.0000 > P. 1(1) ack 1
        1.0100 < . 1(0) ack 2
        1.0200 > . 2(0) ack 1
        1.0201 > . 1(0) ack 1
        """
    )


def test_probes_of_a_closed_window_as_linux_sends_them() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.010 < . 1(0) ack 101 win 0
        1.230 > . 100(0) ack 1        # window-probe
        1.240 < . 1(0) ack 101 win 0
        1.660 > . 100(0) ack 1        # window-probe
        """
    )


def test_probes_of_a_closed_window_with_one_new_octet() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.010 < . 1(0) ack 101 win 0
        6.010 > . 101(1) ack 1        # window-probe
        6.020 < . 1(0) ack 101 win 0
        11.01 > . 101(1) ack 1        # window-probe
        11.02 < . 1(0) ack 102 win 500
        11.03 > . 102(100) ack 1
        """
    )


def test_syn_and_fin_have_classes_of_their_own() -> None:
    check(
        """
        0.000 > S 0(0)
        1.000 > S 0(0)                # syn-copy
        3.000 > S 0(0)                # syn-copy
        3.010 < S. 0(0) ack 1
        4.010 < S. 0(0) ack 1         # syn-copy
        4.011 > . 1(0) ack 1
        5.000 > F. 1(0) ack 1
        5.220 > F. 1(0) ack 1         # fin-copy
        5.660 > F. 1(0) ack 1         # fin-copy
        """
    )


def test_a_fin_with_data_is_a_copy_of_data() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > FP. 1(31) ack 1
        1.220 > FP. 1(31) ack 1       # tail-loss-probe
        1.440 > FP. 1(31) ack 1       # timeout-copy
        1.880 > FP. 1(31) ack 1       # timeout-copy
        """
    )


def test_a_fin_that_joins_resent_data_does_not_hide_the_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        4.000 > P. 1(100) ack 1       # timeout-copy
        5.000 > F. 101(0) ack 1
        10.00 > FP. 1(100) ack 1      # timeout-copy
        """
    )


def test_a_capture_may_begin_in_mid_flow() -> None:
    check(
        """
        0.000 < P. 900(100) ack 500
        0.001 > . 500(0) ack 1000
        0.500 > P. 500(100) ack 1000
        0.720 > P. 500(100) ack 1000  # tail-loss-probe
        0.940 > P. 500(100) ack 1000  # timeout-copy
        """
    )


def test_a_copy_of_something_sent_before_the_capture_began_is_needless_where_it_was_acknowledged() -> None:
    check(
        """
        0.000 > P. 500(100) ack 1000
        0.010 < . 1000(0) ack 600
        0.500 > P. 400(100) ack 1000  # spurious-copy
        """
    )


def test_one_captured_direction_is_enough_to_see_copies() -> None:
    check(
        """
        1.000 > P. 1(100) ack 1
        1.220 > P. 1(100) ack 1       # tail-loss-probe
        1.440 > P. 1(100) ack 1       # timeout-copy
        1.900 > P. 101(100) ack 1
        """
    )


def test_a_damaged_sequence_number_does_not_make_the_rest_look_old() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.100 > P. 90000000(100) ack 1
        1.200 > P. 101(100) ack 1
        1.300 > P. 201(100) ack 1
        """
    )


def test_a_gap_larger_than_any_damage_is_believed_when_it_goes_on() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.100 > P. 90000000(100) ack 1
        1.200 > P. 90000100(100) ack 1
        1.300 > P. 90000200(100) ack 1
        1.520 > P. 90000200(100) ack 1    # tail-loss-probe
        """
    )


def test_a_damaged_acknowledgment_does_not_make_copies_needless() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.010 < . 1(0) ack 4000
        1.220 > P. 1(100) ack 1       # tail-loss-probe
        """
    )


def test_a_fin_bit_that_flipped_does_not_make_the_next_data_a_copy() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        1.100 > F. 101(0) ack 1
        1.200 > P. 101(100) ack 1
        1.300 > P. 201(100) ack 1
        """
    )


def test_a_new_connection_between_the_same_ports_starts_afresh() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1
        9.000 > S -700(0)
        9.010 < S. 70000(0) ack -699
        9.011 > P. -699(100) ack 70001
        """
    )


def test_segments_of_other_flows_are_left_out() -> None:
    first, *_ = segments(HANDSHAKE)
    stranger = first._replace(source=CLIENT._replace(port=1))

    assert [c.segment for c in classify([first, stranger, first._replace(seq=1)], FLOW)] == [
        first,
        first._replace(seq=1),
    ]


def test_sequence_numbers_are_relative_to_the_first_of_their_direction() -> None:
    found = classify(segments(HANDSHAKE + "1.000 > P. 1(100) ack 1", NEAR_WRAP))

    assert [c.seq for c in found] == [0, 0, 1, 1]
    assert found[-1].end == 101


def test_the_client_is_who_sent_the_syn_or_else_has_the_higher_port() -> None:
    syn, syn_ack, ack = segments(HANDSHAKE)

    assert flow_of(syn) == flow_of(syn_ack) == flow_of(ack) == FourTuple(CLIENT, SERVER)
    assert flow_of(syn._replace(source=SERVER, destination=CLIENT)) == FourTuple(SERVER, CLIENT)


def test_a_streaming_reader_learns_of_later_verdicts() -> None:
    classifier = FlowClassifier(FLOW)
    script = HANDSHAKE + "1.0 > P. 1(100) ack 1\n1.22 > P. 1(100) ack 1\n1.66 > P. 1(100) ack 1"
    seen = [classifier.observe(segment) for segment in segments(script)]

    assert seen[4].segment_class is SegmentClass.TAIL_LOSS_PROBE
    assert [(c.number, c.segment_class) for c in classifier.revised] == [(4, SegmentClass.TIMEOUT_COPY)]
