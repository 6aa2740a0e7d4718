"""What is said of both ends before the cut."""

from dataclasses import replace

import pytest

from lab.core.errors import InvalidRun
from lab.core.prediction import Cause, State
from lab.core.socket import SocketOptions, Timer
from lab.run.forecast import forecast, heard_at, outdated, read_settings
from tests.run.cases import FAST_SYSCTLS, made_forecast
from tests.run.fakes import FakeNode, sample, sysctls_of_linux

KEEPALIVE = SocketOptions(keepalive=True, keepalive_idle_s=2.0, keepalive_interval_s=1.0, keepalive_count=2)


def test_both_branches_are_stated_since_nobody_knows_what_a_program_will_do() -> None:
    made = made_forecast()

    assert (made.sending.cause, made.idle.cause) == (Cause.RETRIES2, Cause.NONE)
    assert made.branch(sends=True) is made.sending
    assert made.branch(sends=False) is made.idle
    assert made.situation(sends=True).busy
    assert not made.situation(sends=False).busy


def test_socket_options_decide_both() -> None:
    assert made_forecast(KEEPALIVE).idle.cause is Cause.KEEPALIVE
    assert made_forecast(SocketOptions(user_timeout_s=2.0)).sending.cause is Cause.USER_TIMEOUT
    assert made_forecast(None).idle.cause is Cause.NONE


def test_settings_decide() -> None:
    linux = forecast(State.ESTABLISHED, sample(), None, sysctls_of_linux(), hz=250, writes_on=False)

    assert linux.sending.bound_s == pytest.approx(924.6)
    assert made_forecast().sending.bound_s == pytest.approx(5.4)


def test_a_backed_off_timeout_says_nothing_about_the_next_loss() -> None:
    backed_off = forecast(
        State.ESTABLISHED, sample(backoff=2, rto_s=0.816), None, FAST_SYSCTLS, hz=250, writes_on=False
    )

    assert backed_off.sending_situation.rto_s is None
    assert made_forecast().sending_situation.rto_s == 0.204


def test_a_send_counts_from_itself_and_silence_from_the_last_packet() -> None:
    made = made_forecast(KEEPALIVE)
    assert made.sample is not None
    assert made.heard_at == pytest.approx(made.sample.at - 0.5)

    sending, idle, later = made.due(100.1), made.due(None), made.due(None, 101.0)
    assert sending is not None
    assert sending[0] == pytest.approx(100.1 + (made.sending.window_s or (0, 0))[0])
    assert idle is not None
    assert idle[0] == pytest.approx(99.4 + (made.idle.window_s or (0, 0))[0])
    assert later is not None
    assert later[0] - idle[0] == pytest.approx(1.6)


def test_what_never_ends_is_never_due() -> None:
    assert made_forecast().due(None) is None
    assert replace(made_forecast(KEEPALIVE), sample=None).due(None) is None


def test_a_keepalive_timer_is_taken_as_the_kernel_has_set_it() -> None:
    probed = sample(at=100.0, timer=Timer.KEEPALIVE, expires_s=0.9, last_ack_received_s=0.1)
    made = forecast(State.ESTABLISHED, probed, KEEPALIVE, FAST_SYSCTLS, hz=250, writes_on=False)

    assert made.idle_situation.keepalive_due_s == pytest.approx(1.0)


def test_a_forecast_is_outdated_once_a_keepalive_probe_was_answered() -> None:
    old = sample(at=100.0, timer=Timer.KEEPALIVE, expires_s=0.4, last_ack_received_s=1.6, last_data_received_s=1.6)
    same = replace(old, at=100.2, expires_s=0.2, last_ack_received_s=1.8, last_data_received_s=1.8)
    answered = replace(old, at=100.5, expires_s=0.9, last_ack_received_s=0.1, last_data_received_s=2.1)

    assert heard_at(old) == pytest.approx(heard_at(same))
    assert not outdated(old, same)
    assert outdated(old, answered)
    assert outdated(old, replace(same, timer=Timer.OFF))


def test_a_flow_that_talks_without_keepalive_outdates_nothing() -> None:
    old = sample(at=100.0)

    assert not outdated(old, sample(at=101.0, last_ack_received_s=0.0))
    assert not outdated(None, old)
    assert not outdated(old, None)


def test_a_closed_window_is_seen_and_predicts_probes_for_as_long_as_it_keeps_everything_back() -> None:
    held = sample(timer=Timer.PROBE, backoff=3, retransmits=1, send_queue=5000)
    made = forecast(State.ESTABLISHED, held, None, FAST_SYSCTLS, hz=250, writes_on=True)

    assert made.held_back
    assert (made.sending.cause, made.idle.cause) == (Cause.RETRIES2, Cause.PROBES)
    assert made.idle_situation.backoff == 2
    assert not made_forecast().held_back
    assert outdated(held, replace(held, timer=Timer.RETRANSMIT))


def test_a_zero_window_needs_its_socket() -> None:
    with pytest.raises(InvalidRun, match="vanished before the cut"):
        forecast(State.ZERO_WINDOW, None, None, FAST_SYSCTLS, hz=250, writes_on=False)


def test_settings_that_the_kernel_lacks_are_left_out() -> None:
    node = FakeNode()
    del node.settings["net.ipv4.tcp_rto_max_ms"]
    found = read_settings(node)

    assert found["net.ipv4.tcp_retries2"] == "15"
    assert "net.ipv4.tcp_rto_max_ms" not in found
    assert "net.ipv4.tcp_congestion_control" not in found, "no give-up depends on it"


def test_what_a_close_will_lead_to_is_stated_too() -> None:
    closing = made_forecast().closing

    assert closing is not None
    assert closing.cause is Cause.ORPHAN_RETRIES
    assert closing.give_up_s is not None
    assert closing.give_up_s < (made_forecast().sending.give_up_s or 0.0)


@pytest.mark.parametrize("state", [State.FIN_WAIT_1, State.LAST_ACK, State.FIN_WAIT_2])
def test_of_a_socket_that_is_closed_already_no_close_is_foretold(state: State) -> None:
    made = forecast(state, sample(at=99.9), None, FAST_SYSCTLS, hz=250, writes_on=False)

    assert made.closing is None


def test_of_a_close_before_a_closed_window_nothing_is_foretold() -> None:
    held_back = sample(at=99.9, timer=Timer.PROBE)

    assert forecast(State.ESTABLISHED, held_back, None, FAST_SYSCTLS, hz=250, writes_on=False).closing is None
