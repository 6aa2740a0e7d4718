"""A prediction that failed has proved nothing where what it stood on was not there any more."""

from dataclasses import replace
from typing import Any

import pytest

from lab.core.prediction import State
from lab.core.socket import SocketSample, Timer
from lab.core.verdict import Outcome, judge, why
from lab.run.checks import disturbed, judged
from lab.run.findings import EndFinding, Findings
from lab.run.forecast import forecast
from lab.run.orphan import read_orphan
from lab.testbed.ports import SocketTrack
from tests.run.cases import (
    CUT,
    FAST_SYSCTLS,
    SENT_AT,
    gave_up,
    made_client,
    made_findings,
    made_forecast,
    made_server,
    nothing,
    quiet,
    summary,
    watched,
    window_of,
)
from tests.run.fakes import sample


def later(found: Findings, until: float = 110.0) -> Findings:
    """The same, watched for longer."""
    capture, server = summary(stopped_at=until + 1.0), made_server(seen_until=until)
    return replace(found, watched_until=until, capture=capture, server=server)


def counted(number: int) -> dict[str, Any]:
    both = {"retransmissions": number, "keepalive-probes": 0, "window-probes": 0}
    return {"counted": both, "counters": both}


def died_late(**changes: Any) -> Findings:
    """The client's kernel gave up half a second after its window."""
    at = window_of(made_client())[1] + 0.5
    return later(made_findings(client=made_client(fate=gave_up(at), program_error_at=at, **changes)))


def test_a_prediction_that_failed_while_the_machine_was_busy_is_invalid_and_worth_repeating() -> None:
    checks = judged(died_late(late_s=0.035))
    assert judge(checks) is Outcome.INVALID
    assert disturbed(checks)
    assert "client-undisturbed" in str(why(checks))


def test_a_prediction_that_failed_on_a_calm_machine_stays_refuted() -> None:
    assert judge(judged(died_late())) is Outcome.REFUTED


def looked(rto_s: float, *, at: float = CUT.done_at, backoff: int = 0) -> SocketSample:
    return sample(at=at, rto_s=rto_s, backoff=backoff)


def test_a_prediction_that_failed_and_was_made_of_another_rto_is_invalid_and_worth_repeating() -> None:
    before = looked(0.204, at=CUT.began_at - 0.01)
    checks = judged(died_late(samples=(before, looked(0.2))))
    assert judge(checks) is Outcome.INVALID
    assert disturbed(checks)
    assert "made of an RTO of 0.204 s; in the dark it was 0.200 s" in str(why(checks))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(looked(0.204), id="the same RTO"),
        pytest.param(looked(0.2, at=CUT.began_at - 0.01), id="another one before the cut"),
        pytest.param(looked(0.408, backoff=1), id="backed off already"),
    ],
)
def test_a_prediction_that_failed_of_the_right_rto_stays_refuted(seen: SocketSample) -> None:
    assert judge(judged(died_late(samples=(seen,)))) is Outcome.REFUTED


def test_what_counts_is_the_last_rto_before_its_first_back_off() -> None:
    """A delayed acknowledgment may come by the way that was left open, and be measured."""
    seen = (looked(0.204), looked(0.24, at=CUT.done_at + 0.04), looked(0.48, at=CUT.done_at + 0.3, backoff=1))
    assert "in the dark it was 0.240 s" in str(why(judged(died_late(samples=seen))))


def test_a_prediction_of_an_orphans_end_that_was_made_of_another_rto_is_invalid_too() -> None:
    """The close's own FIN was what was lost first: the end itself was idle."""
    fin, went_at = quiet(lost_at=SENT_AT), SENT_AT + 9.0
    fate = replace(nothing(), closed_at=SENT_AT)
    dead = replace(fate, gone_at=went_at, within_s=0.003, cause="orphan-retries")
    orphan = read_orphan(dead, SocketTrack((), went_at, 0.003), watched(), made_forecast(), fin)
    client = made_client(
        traffic=fin, fate=fate, orphan=orphan, samples=(looked(0.2),), program_error_at=None, **counted(0)
    )
    checks = judged(later(made_findings(client=client)))
    assert not client.sends
    assert judge(checks) is Outcome.INVALID
    assert disturbed(checks)


def probing(backoff: int, retransmits: int = 0, **changes: Any) -> SocketSample:
    return sample(at=CUT.done_at + 0.01, timer=Timer.PROBE, backoff=backoff, retransmits=retransmits, **changes)


def outlived(client: EndFinding) -> Findings:
    """Nothing came of what was due."""
    assert client.window is not None
    until = client.window[1] + 1.0
    client = replace(client, fate=nothing(), program_error_at=None, seen_until=until, **counted(0))
    return later(made_findings(client=client), until)


@pytest.mark.parametrize(
    ("seen", "is_as_foretold"),
    [
        pytest.param(probing(2), True, id="the same"),
        pytest.param(probing(3, 1), True, id="one that was lost in the dark"),
        pytest.param(probing(3), False, id="one more was answered"),
    ],
)
def test_a_prediction_that_failed_while_probes_were_answered_after_all_is_invalid(
    seen: SocketSample, is_as_foretold: bool
) -> None:
    held_back = sample(at=99.9, timer=Timer.PROBE, backoff=2)
    client = made_client(
        forecast=forecast(State.ESTABLISHED, held_back, None, FAST_SYSCTLS, hz=250, writes_on=False),
        traffic=quiet(),
        samples=(seen,),
    )
    checks = judged(outlived(client))
    assert judge(checks) is (Outcome.REFUTED if is_as_foretold else Outcome.INVALID)
    assert disturbed(checks) is not is_as_foretold


def test_a_window_that_closed_between_the_look_and_the_cut_spoils_the_prediction_of_an_idle_end() -> None:
    client = made_client(traffic=quiet(), samples=(probing(0),), **counted(0))
    checks = judged(made_findings(client=client))
    assert judge(checks) is Outcome.INVALID
    assert "made of an open window" in str(why(checks))


def test_another_rto_spoils_no_prediction_that_held() -> None:
    found = made_findings(client=made_client(samples=(looked(0.2),)))
    assert judge(judged(found)) is Outcome.CONFIRMED


def test_a_busy_machine_spoils_no_prediction_that_held() -> None:
    assert judge(judged(made_findings(client=made_client(late_s=0.5)))) is Outcome.CONFIRMED
