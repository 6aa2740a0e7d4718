"""One packet captured twice is not a packet sent twice."""

from tests.core.script import HANDSHAKE, check


def test_the_same_packet_microseconds_later_is_a_duplicate_of_the_tap() -> None:
    check(
        HANDSHAKE
        + """
        1.000000 > P. 1(100) ack 1
        1.000008 > P. 1(100) ack 1    # tap-duplicate
        1.010000 < . 1(0) ack 101
        """
    )


def test_damage_in_one_of_both_does_not_hide_the_duplicate() -> None:
    check(
        HANDSHAKE
        + """
        1.000000 > P. 1(100) ack 1 id 7
        1.000008 > FP. 1(100) ack 900 id 7    # tap-duplicate
        """
    )


def test_a_second_vlan_fifty_milliseconds_late_is_known_by_the_identification() -> None:
    check(
        """
        0.000 > S 0(0) id 7
        0.050 > S 0(0) id 7                   # tap-duplicate
        0.069 < S. 0(0) ack 1 id 0 ts 5
        0.070 > . 1(0) ack 1 id 8
        0.071 > P. 1(100) ack 1 id 9
        0.100 > S 0(0) id 7                   # tap-duplicate
        0.119 < S. 0(0) ack 1 id 0 ts 5       # tap-duplicate
        0.120 > . 1(0) ack 1 id 8             # tap-duplicate
        0.121 > P. 1(100) ack 1 id 9          # tap-duplicate
        """
    )


def test_a_sender_that_reuses_its_identification_still_resends_after_its_timer() -> None:
    check(
        HANDSHAKE
        + """
        1.000 > P. 1(100) ack 1 id 7
        1.220 > P. 1(100) ack 1 id 7          # tail-loss-probe
        1.440 > P. 1(100) ack 1 id 7          # timeout-copy
        """
    )


def test_a_fast_copy_within_a_millisecond_is_a_copy_where_acknowledgments_asked_for_it() -> None:
    check(
        HANDSHAKE
        + """
        1.00000 > . 1(1000) ack 1 ts 9
        1.00001 > . 1001(1000) ack 1 ts 9
        1.00002 > . 2001(1000) ack 1 ts 9
        1.00003 > . 3001(1000) ack 1 ts 9
        1.00005 < . 1(0) ack 1 sack 1001-2001
        1.00006 < . 1(0) ack 1 sack 1001-3001
        1.00007 < . 1(0) ack 1 sack 1001-4001
        1.00009 > . 1(1000) ack 1 ts 9        # fast-copy
        """
    )


def test_repacketised_copies_of_one_burst_are_copies() -> None:
    check(
        HANDSHAKE
        + """
        1.00000 > . 1(400) ack 1
        1.00000 > . 401(700) ack 1
        1.30000 > . 1(400) ack 1              # timeout-copy
        1.30002 > . 1(1100) ack 1             # timeout-copy
        """
    )


def test_duplicate_acknowledgments_are_no_duplicates_of_the_tap() -> None:
    check(
        HANDSHAKE
        + """
        1.00000 > . 1(1000) ack 1
        1.01000 < . 1(0) ack 1 id 10
        1.01001 < . 1(0) ack 1 id 11
        1.01002 < . 1(0) ack 1 id 12
        1.01003 < . 1(0) ack 1 id 12          # tap-duplicate
        """
    )
