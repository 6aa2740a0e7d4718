"""Question: does the model hold for settings that nobody chose?

Topology: client, router, server in a row; the client sends one line into the hole, under 40 random settings.

Prediction: for each, the window stated before the cut contains the death; the death is the first expiry at or past
the bound; and the copies in the capture are the kernel's TcpRetransSegs: 40 of 40.

Look at: any run's ``record.json``; the settings are in the test's name and under ``settings.client``.
"""

import random

import pytest

from lab.experiments.common import LINUX, each, one_send, quiet_client, sysctls
from lab.report.record import Cause, Outcome, Record
from lab.run.spec import RunSpec

SEED = 6298
SETTINGS = 40


def draw(rng: random.Random, ipv6: bool) -> tuple[str, RunSpec]:
    """One setting that retries2 or the user timeout decides, done within some 20 seconds."""
    rto_max_ms = rng.choice((1000, 1000, 1500, 2000, 3000, 5000))
    retries2 = rng.randint(3, {1000: 14, 1500: 11, 2000: 9, 3000: 7, 5000: 6}[rto_max_ms])
    rto_min_us = rng.choice((200_000, 200_000, 100_000, 40_000))
    user_timeout_s = round(rng.uniform(1.0, 9.0), 2) if rng.random() < 0.5 else None
    options = () if user_timeout_s is None else ("--user-timeout", str(user_timeout_s))
    settings = {"rto_max_ms": rto_max_ms, "retries2": retries2, "rto_min_us": rto_min_us}
    name = f"retries2_{retries2}-max_{rto_max_ms}ms-min_{rto_min_us}us-uto_{user_timeout_s or 'none'}"
    spec = one_send(profile=LINUX, client=quiet_client(*options), sysctls=sysctls(settings), ipv6=ipv6)
    return f"{name}-ipv{6 if ipv6 else 4}", spec


def draw_all(rng: random.Random) -> dict[str, RunSpec]:
    """As many different settings as are wanted, both families in turn."""
    drawn: dict[str, RunSpec] = {}
    while len(drawn) < SETTINGS:
        name, spec = draw(rng, ipv6=len(drawn) % 2 == 1)
        drawn[name] = spec
    return drawn


DRAWN = draw_all(random.Random(SEED))  # noqa: S311 - settings, not secrets


@pytest.mark.parametrize("spec", each(DRAWN))
def test_measured_in_the_predicted_window(spec: RunSpec, record: Record) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    end = record.observation.client
    assert end.cause in (Cause.RETRIES2, Cause.USER_TIMEOUT), spec.name
    assert record.counters["client"]["TcpRetransSegs"] == end.copies
