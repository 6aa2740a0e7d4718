"""Question: what happens when the path comes back before anybody gave up?

Topology: client, router, server in a row; the client sends one line into the hole, and the hole is healed.

Prediction: the line is delivered at the next backed-off copy, not at the heal (RFC 6298 section 5), and nobody is told
anything. With both kernels' defaults that wait can be as long as the silence was.

Look at: ``observation.client.recovered_s`` against ``fault.healed_at`` in ``record.json``.
"""

import pytest

from lab.experiments.common import LINUX, both_families, one_send
from lab.report.record import Outcome, Record
from lab.run.spec import RunSpec

SOON = one_send(name="heal-soon", profile=LINUX, heal_after_s=2.0)
LATER = one_send(name="heal-later", profile=LINUX, heal_after_s=5.0)


@pytest.mark.parametrize("spec", [*both_families(SOON, "after-2s"), *both_families(LATER, "after-5s")])
def test_delivered_at_the_next_copy(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.gave_up_s is None
    assert end.noticed_s is None
    assert end.recovered_s is not None
    assert end.recovered_s > (spec.heal_after_s or 0)
