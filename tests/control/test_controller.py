import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lab.control.controller import Controller
from lab.control.faults import RULES_KEPT
from lab.control.refusals import Closing, NoCapture, NoSuchFlow, OtherFaultInForce, UnknownFault
from lab.control.roll import Selector
from lab.core.errors import EnvironmentNotReady, InvalidRun
from lab.core.fault import Cut, Fault, Matched, Scope
from lab.core.flow import FourTuple
from lab.testbed.ports import CutReceipt, PassingFlow
from tests.control.fakes import FLOW, OTHER, FakeRouter, passing, until


def kinds(controller: Controller) -> list[str]:
    return [event.kind for event in controller.events.after(0)]


def details(controller: Controller, kind: str) -> list[dict[str, Any]]:
    return [dict(event.detail) for event in controller.events.after(0) if event.kind == kind]


def test_the_same_cut_again_is_the_same_fault(controller: Controller, router: FakeRouter) -> None:
    first, new = controller.cut(FLOW)
    again, second_new = controller.cut(FLOW)

    assert (new, second_new) == (True, False)
    assert first.name == again.name
    assert router.asked == ["cut 40000"]


@pytest.mark.parametrize("other", [{"direction": Cut.RETURN}, {"scope": Scope.HOST}, {"heal_after_s": 9.0}])
def test_another_cut_of_a_flow_that_is_cut_is_refused(
    controller: Controller, router: FakeRouter, other: dict[str, Any]
) -> None:
    first, _ = controller.cut(FLOW)

    with pytest.raises(OtherFaultInForce) as refused:
        controller.cut(FLOW, **other)

    assert refused.value.facts == {"fault": first.name}
    assert router.cut_now == {Fault(FLOW)}


def test_a_heal_is_idempotent_and_a_cut_after_it_is_a_new_fault(controller: Controller, router: FakeRouter) -> None:
    first, _ = controller.cut(FLOW)
    healed = controller.heal(first.name)
    again = controller.heal(first.name)
    second, new = controller.cut(FLOW)

    assert healed.healed == again.healed
    assert healed.healed is not None
    assert (new, second.name == first.name) == (True, False)
    assert router.asked == ["cut 40000", "heal 40000", "cut 40000"]


def test_each_cut_of_a_flow_counts_its_own_packets_though_the_rules_count_on(
    controller: Controller, router: FakeRouter
) -> None:
    first, _ = controller.cut(FLOW)
    router.drop(Fault(FLOW), 5, 4)
    controller.heal(first.name)
    second, _ = controller.cut(FLOW)
    router.drop(Fault(FLOW), 2, 1)

    assert controller.fault(first.name).matched == Matched(5, 4)
    assert controller.fault(second.name).matched == Matched(2, 1)
    assert controller.matched_total() == Matched(7, 5)


def test_a_flow_that_does_not_pass_is_cut_only_where_it_need_not_exist(
    controller: Controller, router: FakeRouter
) -> None:
    with pytest.raises(NoSuchFlow):
        controller.cut(OTHER)
    assert router.asked == []

    controller.cut(OTHER, must_exist=False)
    assert router.asked == ["cut 40001"]


def test_a_flow_that_has_just_appeared_can_be_cut(controller: Controller, router: FakeRouter) -> None:
    router.passing.append(passing(OTHER, since=200.0))

    record, _ = controller.cut(Selector(5000, "newest"))

    assert record.fault.flow == OTHER


def test_flows_say_which_fault_keeps_them_dark(controller: Controller, router: FakeRouter) -> None:
    router.passing.append(passing(OTHER))
    record, _ = controller.cut(OTHER)

    assert [(one.flow, fault) for one, fault in controller.flows()] == [(FLOW, None), (OTHER, record.name)]


def test_a_fault_heals_by_itself_when_it_was_asked_to(controller: Controller, router: FakeRouter) -> None:
    record, _ = controller.cut(FLOW, heal_after_s=0.05)
    until(lambda: not router.cut_now)

    healed = controller.fault(record.name)
    assert healed.healed is not None
    assert healed.healed_by == "timer"
    assert 0.05 <= healed.healed.done_at - record.cut.done_at < 0.25, "it does not wait for the next look"


def test_what_happens_is_told_in_order(controller: Controller, router: FakeRouter) -> None:
    record, _ = controller.cut(FLOW)
    router.drop(Fault(FLOW), 1, 0)
    until(lambda: "matched" in kinds(controller))
    router.passing.clear()
    until(lambda: "flow-ended" in kinds(controller))
    controller.heal(record.name)

    assert kinds(controller) == ["capture-started", "cut", "matched", "flow-ended", "healed"]
    assert details(controller, "matched")[0]["matched"] == {"forward": 1, "return": 0}
    assert details(controller, "healed")[0]["by"] == "request"


def test_a_silent_owner_heals_everything(router: FakeRouter, tmp_path: Path) -> None:
    router.passing.append(passing(OTHER))
    with Controller(router, tmp_path, heartbeat_s=0.1) as controller:
        controller.cut(FLOW)
        controller.cut(OTHER)
        time.sleep(0.3)
        assert len(router.cut_now) == 2, "there was no first heartbeat"
        beaten_at = time.monotonic()
        controller.beat()
        until(lambda: not router.cut_now)
        took_s = time.monotonic() - beaten_at

        assert 0.1 <= took_s < 0.3
        assert controller.health["heartbeat"] == "lost"
        assert {record.healed_by for record in controller.faults()} == {"heartbeat"}
        assert kinds(controller)[-3:] == ["heartbeat-lost", "healed", "healed"]
        controller.beat()
        assert controller.health["heartbeat"] == "alive"


def test_the_end_heals_everything_and_takes_no_more_orders(router: FakeRouter, tmp_path: Path) -> None:
    with Controller(router, tmp_path) as controller:
        controller.cut(FLOW)
        controller.close()

        assert not router.cut_now
        assert kinds(controller)[-2:] == ["healed", "closing"]
        assert controller.events.closed
        with pytest.raises(Closing):
            controller.cut(FLOW)
        with pytest.raises(Closing):
            controller.beat()


def test_two_clients_that_cut_at_once_get_one_fault(controller: Controller, router: FakeRouter) -> None:
    barrier = threading.Barrier(8)

    def cut(_: int) -> tuple[str, bool]:
        barrier.wait()
        record, new = controller.cut(FLOW)
        return record.name, new

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(cut, range(8)))

    assert len({name for name, _ in answers}) == 1
    assert sum(new for _, new in answers) == 1
    assert router.asked == ["cut 40000"]


def test_fifty_cuts_and_heals_leave_nothing_in_force(controller: Controller, router: FakeRouter) -> None:
    for _ in range(50):
        record, _ = controller.cut(FLOW)
        controller.heal(record.name)

    assert len(controller.faults()) == 50
    assert not router.cut_now
    assert controller.counts == {"cuts": 50, "heals": 50, "lost": 0}


def test_the_rules_of_faults_that_were_healed_long_ago_are_removed_and_their_counts_kept(
    controller: Controller, router: FakeRouter
) -> None:
    flows = [FourTuple(FLOW.client._replace(port=port), FLOW.server) for port in range(41000, 41000 + RULES_KEPT + 2)]
    for flow in flows:
        record, _ = controller.cut(flow, must_exist=False)
        router.drop(Fault(flow), 3, 2)
        controller.heal(record.name)
    kept, _ = controller.cut(flows[1], must_exist=False)
    until(lambda: "forget 41000" in router.asked)
    again, _ = controller.cut(flows[0], must_exist=False)
    router.drop(Fault(flows[0]), 1, 1)

    assert "forget 41001" not in router.asked, "it is in force"
    assert controller.fault(again.name).matched == Matched(1, 1), "the kernel counts from zero"
    assert controller.fault(kept.name).matched == Matched(0, 0)
    assert controller.matched_total() == Matched(3 * len(flows) + 1, 2 * len(flows) + 1)


def test_an_unknown_id_is_refused(controller: Controller) -> None:
    for ask in (controller.fault, controller.heal):
        with pytest.raises(UnknownFault):
            ask("nix")


def test_a_router_that_is_gone_is_told_once_and_shows_in_its_health(controller: Controller, router: FakeRouter) -> None:
    controller.cut(FLOW)
    router.broken = True
    until(lambda: controller.health["status"] == "failing")
    time.sleep(0.6)

    assert kinds(controller).count("trouble") == 1
    with pytest.raises(InvalidRun):
        controller.heal_all()
    router.broken = False
    until(lambda: controller.health["status"] == "ok")


def test_a_timed_heal_that_fails_is_tried_again(controller: Controller, router: FakeRouter) -> None:
    controller.cut(FLOW, heal_after_s=0.05)
    router.broken = True
    until(lambda: controller.health["status"] == "failing")
    router.broken = False
    until(lambda: not router.cut_now)


def test_one_flow_that_cannot_be_healed_keeps_no_other_dark(
    controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    router.passing.append(passing(OTHER))
    controller.cut(FLOW)
    controller.cut(OTHER)
    heal = router.heal

    def fail_for_one(fault: Fault) -> CutReceipt:
        if fault.flow == FLOW:
            raise InvalidRun("The kernel refused the rules.")
        return heal(fault)

    monkeypatch.setattr(router, "heal", fail_for_one)
    with pytest.raises(InvalidRun, match="refused"):
        controller.heal_all()

    assert {fault.flow for fault in router.cut_now} == {FLOW}
    monkeypatch.undo()


def test_a_heal_that_a_silent_owner_is_owed_is_tried_until_it_is_done(router: FakeRouter, tmp_path: Path) -> None:
    with Controller(router, tmp_path, heartbeat_s=0.1) as controller:
        record, _ = controller.cut(FLOW)
        controller.beat()
        router.broken = True
        until(lambda: controller.health["status"] == "failing" and controller.counts["lost"])
        router.broken = False
        until(lambda: not router.cut_now)

        assert controller.fault(record.name).healed_by == "heartbeat"


def test_an_error_that_nobody_foresaw_does_not_end_what_heals_by_itself(
    controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.cut(FLOW, heal_after_s=0.5)

    def fail() -> Sequence[PassingFlow]:
        raise KeyError("an attribute that a new kernel left out")

    monkeypatch.setattr(router, "flows", fail)
    until(lambda: controller.health["status"] == "failing")
    until(lambda: not router.cut_now)


def test_a_capture_that_cannot_start_leaves_the_rest_to_work(
    router: FakeRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EnvironmentNotReady("libpcap is missing")

    monkeypatch.setattr(router, "start_capture", fail)
    with Controller(router, tmp_path) as controller:
        until(lambda: "capture-failed" in kinds(controller))
        controller.cut(FLOW)
        with pytest.raises(NoCapture, match="failed"):
            controller.recording.summary()


def test_a_capture_that_fails_on_the_way_is_told(
    controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise EnvironmentNotReady("The disk is full.")

    monkeypatch.setattr(router, "flush_capture", fail)
    until(lambda: controller.health["capture"] == "failed")

    assert details(controller, "capture-failed") == [{"reason": "The disk is full."}]
    controller.cut(FLOW)


def test_a_capture_that_starts_too_late_is_stopped_and_not_told(
    router: FakeRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, stopped = threading.Event(), threading.Event()
    monkeypatch.setattr(router, "start_capture", lambda *_, **__: closed.wait(10))
    monkeypatch.setattr(router, "stop_capture", stopped.set)
    with Controller(router, tmp_path) as controller:
        closer = threading.Thread(target=controller.close)
        closer.start()
        until(lambda: "closing" in kinds(controller))
        closed.set()
        closer.join(10)

    assert stopped.is_set()
    assert kinds(controller) == ["closing"]


def test_records_that_were_given_away_do_not_change(controller: Controller, router: FakeRouter) -> None:
    record, _ = controller.cut(FLOW)
    controller.heal(record.name)

    assert record.in_force
    assert router.asked == ["cut 40000", "heal 40000"]


def test_the_heal_of_an_earlier_fault_bounds_what_belongs_to_the_next(controller: Controller) -> None:
    first, _ = controller.cut(FLOW)
    healed = controller.heal(first.name).healed
    second, _ = controller.cut(FLOW)

    assert healed is not None
    assert controller.dark_before(first) == float("-inf")
    assert controller.dark_before(second) == healed.done_at


def test_a_line_is_told_of_what_a_person_may_want_to_read(router: FakeRouter, tmp_path: Path) -> None:
    lines: list[str] = []
    with Controller(router, tmp_path, tell=lines.append) as controller:
        until(lambda: lines == ["capture-started"])
        record, _ = controller.cut(FLOW, direction=Cut.RETURN)
        router.passing = [passing(FourTuple(FLOW.client, OTHER.server))]

    assert lines[1] == f"cut {FLOW} fault={record.name} direction=return scope=flow"
    assert lines[-1] == "closing"
