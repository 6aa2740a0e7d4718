from lab.control.events import KEPT, EventLog


def test_events_come_back_in_order_behind_the_one_that_a_listener_has() -> None:
    log = EventLog()
    first, second, third = (log.publish(float(n), "cut", {"n": n}) for n in range(3))

    assert log.after(0) == [first, second, third]
    assert log.after(log.number_of(log.name(first))) == [second, third]


def test_an_id_of_another_life_is_before_all() -> None:
    log, other = EventLog(), EventLog()
    event = other.publish(1.0, "cut", {})

    assert log.number_of(other.name(event)) == 0
    assert [log.number_of(name) for name in ("", "x", f"{log.life}.", f"{log.life}.-1", f"{log.life}.²")] == [0] * 5


def test_the_oldest_events_are_forgotten() -> None:
    log = EventLog()
    for n in range(KEPT + 10):
        log.publish(0.0, "matched", {"n": n})

    assert [event.detail["n"] for event in log.after(0)] == list(range(10, KEPT + 10))


def test_listeners_are_woken_by_events_and_by_the_end_until_they_are_forgotten() -> None:
    log, woken = EventLog(), []
    log.listen(lambda: woken.append("kept"))

    def leaves() -> None:
        woken.append("leaves")

    log.listen(leaves)
    log.publish(0.0, "cut", {})
    log.forget(leaves)
    log.forget(leaves)
    log.close()

    assert woken == ["kept", "leaves", "kept"]
    assert log.closed
