from lab.control.faults import KEPT, FaultBook, FaultRecord
from lab.core.fault import Fault, Matched
from lab.core.timeline import ClockPair
from lab.testbed.ports import CutReceipt
from tests.control.fakes import FLOW


def record(book: FaultBook, port: int, *, healed: bool) -> FaultRecord:
    fault = Fault(FLOW._replace(client=FLOW.client._replace(port=port)))
    made = FaultRecord(fault, None, CutReceipt(1.0, 1.0), ClockPair(wall=101.0, monotonic=1.0), book.total(fault))
    book.add(made)
    if healed:
        made.healed = CutReceipt(2.0, 2.0)
        book.close(made, Matched(1, 1))
    return made


def test_the_oldest_healed_faults_are_forgotten_and_those_in_force_never() -> None:
    book = FaultBook()
    dark = record(book, 1, healed=False)
    first = record(book, 2, healed=True)
    for port in range(3, KEPT + 3):
        record(book, port, healed=True)
    record(book, 1, healed=False)

    assert book.get(first.name) is None
    assert book.get(dark.name) is dark
    assert len(list(book)) == KEPT + 2


def test_instants_become_unix_time_by_the_clock_of_the_cut() -> None:
    assert record(FaultBook(), 1, healed=False).unix(3.5) == 103.5
