"""An agenda gives the same answers as looking at everybody would."""

from hypothesis import given
from hypothesis import strategies as st

from lab.live.session.agenda import Agenda, Key

KEYS = st.tuples(st.integers(0, 1), st.integers(0, 3))
STEPS = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 6).map(float)) | st.integers(0, 6).map(float), max_size=30)


@given(STEPS)
def test_who_is_due_comes_first_and_once(steps: list[tuple[Key, float | None] | float]) -> None:
    agenda, plain = Agenda(), dict[Key, float]()
    for step in steps:
        if isinstance(step, float):
            due = sorted((at, key) for key, at in plain.items() if at <= step)
            taken = agenda.take(now=step)
            assert taken == (due[0][1] if due else None)
            plain.pop(taken or (), None)
        else:
            key, at = step
            agenda.put(key, at)
            plain.pop(key, None)
            plain |= {} if at is None else {key: at}
        assert agenda.next_at() == min(plain.values(), default=None)


def test_the_agenda_does_not_grow_with_plans_that_were_dropped() -> None:
    agenda = Agenda()
    agenda.put((0, 0), 1.0)
    for at in range(10_000):
        agenda.put((0, 1), 100.0 + at)

    assert agenda.next_at() == 1.0
    assert len(agenda._heap) < 100
