"""A socket in words, for whoever waited for its end in vain."""

from dataclasses import replace

from lab.core.socket import TcpState, Timer
from lab.testcontainers.sockets import in_words
from tests.run.fakes import sample

BEFORE = replace(sample(at=99.0), total_retrans=2)


def test_a_socket_that_retransmits_says_how_often_and_when_next() -> None:
    last = replace(BEFORE, at=103.0, total_retrans=7, timer=Timer.RETRANSMIT, expires_s=1.5)

    said = in_words([BEFORE, last], cut_at=100.0, now=103.5)
    assert said == "state ESTABLISHED, its program has it open, 5 copies since the cut, the next copy is due in 1.00 s"


def test_an_orphan_and_a_silent_socket_are_told() -> None:
    orphan = replace(BEFORE, at=103.0, inode=0, state=TcpState.FIN_WAIT1, total_retrans=3, timer=Timer.OFF)

    said = in_words([BEFORE, orphan], cut_at=100.0, now=103.5)
    assert said == "state FIN_WAIT1, its program has closed it, 1 copy since the cut, no timer runs, so nothing is due"
    assert in_words([], cut_at=100.0, now=103.5) == "its socket was never seen"
