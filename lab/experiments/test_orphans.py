"""Question: how long does a kernel keep a socket that its program has closed?

Topology: client, router, server in a row; one end closes into the hole, or the client's close was acknowledged before;
or a program closes in the dark at an instant that was not known before the cut.

Prediction: FIN_WAIT1 and LAST_ACK by ``tcp_orphan_retries``, a duration like ``tcp_retries2``; its default 0 counts as
8, but only while the RTO is below its maximum. FIN_WAIT2 by ``tcp_fin_timeout``. Nobody is told: no program is left.
A close whose instant nobody knew: the same, as long as it comes before that bound; after it the socket ends at its next
expiry.

Look at: ``observation.client.copy_classes``; the socket's samples in ``timeline.jsonl``.
"""

import pytest

from lab.core.prediction import State
from lab.experiments.common import FAST, both_families, each, one_send, quiet_client, server, sysctls
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import Action, RunSpec

SEND_AND_CLOSE = (Action(0.05, "client", "send"), Action(0.06, "client", "close"))


def fin_wait_1(retries: int, **changes: object) -> RunSpec:
    """The client sends a line and closes, both into the hole."""
    fields: dict[str, object] = {
        "actions": SEND_AND_CLOSE,
        "client_state": State.FIN_WAIT_1,
        "writes_on": True,
        "sysctls": sysctls({"orphan_retries": retries}),
        **changes,
    }
    return one_send(**fields)


def last_ack(retries: int, **changes: object) -> RunSpec:
    """The client's FIN arrives; then the path goes dark and the server closes."""
    fields: dict[str, object] = {
        "server": server("--keep-open"),
        "client": quiet_client("--keep-open"),
        "actions": (Action(-0.3, "client", "shutdown"), Action(0.05, "server", "close")),
        "server_state": State.LAST_ACK,
        "sysctls": sysctls(server={"orphan_retries": retries}),
        **changes,
    }
    return one_send(**fields)


def fin_wait_2(timeout_s: int, **changes: object) -> RunSpec:
    """The client closes, the server acknowledges and never closes; then the path goes dark."""
    fields: dict[str, object] = {
        "server": server("--keep-open"),
        "actions": (Action(-0.3, "client", "close"),),
        "client_state": State.FIN_WAIT_2,
        "profile": FAST,
        "sysctls": {"client": {"net.ipv4.tcp_fin_timeout": str(timeout_s)}},
        **changes,
    }
    return one_send(**fields)


FIN_WAIT_1 = {f"orphan-retries-{n}": fin_wait_1(n) for n in (0, 1, 2, 4, 6, 8)}
LAST_ACK = {f"orphan-retries-{n}": last_ack(n) for n in (0, 1, 2, 4, 6, 8)}
FIN_WAIT_2 = {f"fin-timeout-{n}": fin_wait_2(n) for n in (2, 3, 4, 5, 7)}


@pytest.mark.parametrize("spec", [*each(FIN_WAIT_1), *both_families(FIN_WAIT_1["orphan-retries-0"], "default")[1:]])
def test_fin_wait_1_with_data(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause is Cause.ORPHAN_RETRIES, spec.name
    assert record.counters["client"]["TcpRetransSegs"] == end.copies


@pytest.mark.parametrize("spec", [*each(LAST_ACK), *both_families(LAST_ACK["orphan-retries-0"], "default")[1:]])
def test_last_ack(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.server
    assert end.cause is Cause.ORPHAN_RETRIES, spec.name
    assert record.counters["server"]["TcpRetransSegs"] == end.copies


@pytest.mark.parametrize("spec", [*each(FIN_WAIT_2), *both_families(FIN_WAIT_2["fin-timeout-3"], "3")[1:]])
def test_fin_wait_2(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause is Cause.FIN_TIMEOUT, spec.name
    assert end.copies == 0


def unforeseen(close_s: float, *, send_s: float | None = 0.05, orphan_retries: int = 0, **changes: object) -> RunSpec:
    """The client closes so long after the cut, and the run was not told that it would."""
    sends = () if send_s is None else (Action(send_s, "client", "send"),)
    fields: dict[str, object] = {
        "actions": (*sends, Action(close_s, "client", "close")),
        "sysctls": sysctls({"orphan_retries": orphan_retries}),
        "watch_s": 10.0,
        **changes,
    }
    return one_send(**fields)


UNFORESEEN = {
    "with-the-data": unforeseen(0.06, writes_on=True),
    "before-the-probe": unforeseen(0.2, writes_on=True),
    "in-the-ladder": unforeseen(1.5),
    "in-the-ladder-8": unforeseen(1.5, orphan_retries=8, sysctls=sysctls({"orphan_retries": 8, "retries2": 10})),
    "past-the-bound": unforeseen(4.5),
    "past-every-copy": unforeseen(6.4),
    "nothing-in-flight": unforeseen(1.5, send_s=None),
    "user-timeout": unforeseen(1.5, client=quiet_client("--user-timeout", "4")),
}


@pytest.mark.parametrize("spec", each(UNFORESEEN))
def test_a_close_that_nobody_foresaw(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    client, said = record.observation.client, record.prediction.client
    assert client.orphan is not None, spec.name
    assert said.orphan is not None
    assert said.orphan.window_s is not None
    assert client.orphan.gone_s is not None
    assert client.orphan.cause is said.orphan.cause
    assert {"client-orphan", "client-orphan-rule", "client-copies"} <= {check.name for check in record.checks}
