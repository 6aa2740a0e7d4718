"""What is remembered of one side, and that it stays bounded."""

from lab.core.budget import Budget
from lab.core.retransmission import FlowClassifier, SegmentClass
from lab.core.sender import Sender
from tests.core.script import CLIENT, FLOW, HANDSHAKE, SERVER, segments

MSS = 1000


def send(classifier: FlowClassifier, count: int, *, acknowledged: bool) -> Sender:
    *_, last = [classifier.observe(segment) for segment in segments(HANDSHAKE)]
    data = last.segment._replace(length=MSS)
    for n in range(count):
        now = 1 + n / 100
        classifier.observe(data._replace(time_s=now, seq=data.seq + n * MSS))
        if acknowledged:
            ack = last.segment._replace(time_s=now, source=SERVER, destination=CLIENT, seq=data.ack)
            classifier.observe(ack._replace(ack=data.seq + (n + 1) * MSS))
    return classifier.sender(last.direction)


def test_what_was_acknowledged_is_forgotten() -> None:
    sender = send(FlowClassifier(FLOW), 5000, acknowledged=True)

    assert len(sender.sent) <= 129


def test_a_long_flight_is_remembered_up_to_the_budget() -> None:
    sender = send(FlowClassifier(FLOW, Budget(sendings=1000)), 5000, acknowledged=False)

    assert 500 <= len(sender.sent) <= 1001


def test_a_copy_of_something_forgotten_is_a_copy_still() -> None:
    classifier = FlowClassifier(FLOW, Budget(sendings=100))
    sender = send(classifier, 1000, acknowledged=False)
    first = segments(HANDSHAKE)[-1]._replace(time_s=30.0, length=MSS)

    assert all(sending.start > first.seq + MSS for sending in sender.sent)
    assert classifier.observe(first).segment_class is SegmentClass.TIMEOUT_COPY


def test_the_memory_for_sendings_is_shared_among_flows() -> None:
    budget = Budget()
    shares = []
    for flows in (1, 100, 1000, 20_000):
        budget.share(flows)
        shares.append(budget.sendings)

    assert shares == [4096, 4000, 400, 32]


def test_round_trips_are_timed_by_what_was_not_resent() -> None:
    classifier = FlowClassifier(FLOW)
    script = HANDSHAKE + "1.0 > P. 1(9) ack 1\n1.5 > P. 1(9) ack 1\n1.501 < . 1(0) ack 10"
    items = [classifier.observe(segment) for segment in segments(script)]

    assert classifier.sender(items[0].direction).rtt_min_s == 0.01
