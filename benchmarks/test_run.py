"""What one run costs, and how exactly deaths are dated while twenty testbeds die at once."""

import resource
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.processes import cpu_s, resident_bytes
from lab.core.timeline import Observation
from lab.experiments.common import one_send
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.testbed.netns import NetnsTestbed, open_testbed
from lab.testbed.ports import TestbedSpec

AT_ONCE = 20
STARTS_AT_ONCE = 3
DATED_S = 0.02
"""How exactly a death is to be dated, even with twenty testbeds on two cores."""


class Metered(NetnsTestbed):
    """A testbed that reads what its processes have cost before it ends them."""

    cost_s = 0.0
    memory = 0

    def close(self) -> None:
        """Read, then close."""
        if not self.cost_s:
            self.cost_s, self.memory = cpu_s(), resident_bytes()
        super().close()


def test_cost_of_one_run(tmp_path: Path, figures: Callable[[Figure], None]) -> None:
    """A whole run with capture, bystander, prediction, watch and record: CPU of the caller, and of everything else."""
    Run(one_send(), open_testbed, out=tmp_path / "warm").execute()
    before_s, before_bytes, opened = cpu_s(), resident_bytes(), []

    def open_metered(spec: TestbedSpec) -> NetnsTestbed:
        opened.append(Metered(spec))
        return opened[0]

    caller_s, began = _own_cpu_s(), time.monotonic()
    record = Run(one_send(), open_metered, out=tmp_path / "run").execute()
    took_s, caller_s = time.monotonic() - began, _own_cpu_s() - caller_s
    testbed_s, memory = opened[0].cost_s - before_s, opened[0].memory - before_bytes
    assert record.outcome is Outcome.CONFIRMED, record.reason
    figures(
        Figure(
            f"one run of {took_s:.1f} s",
            f"CPU: {caller_s:.2f} s in the calling process, {testbed_s:.2f} s in the testbed's processes",
            f"{took_s:.1f} s of time; {memory / 1e6:.0f} MB in the testbed's processes",
            f"{(caller_s + testbed_s) / took_s * 100:.0f} % of one core",
        )
    )


def test_dating_with_twenty_testbeds_at_once(tmp_path: Path, figures: Callable[[Figure], None]) -> None:
    """Twenty runs side by side whose sockets die within moments of each other."""
    within_s: list[float] = []

    def tell(observation: Observation) -> None:
        if observation.kind == "gave-up" and observation.source == "client":
            within_s.append(float(str(observation.detail["within_s"])))

    gate = threading.BoundedSemaphore(STARTS_AT_ONCE)

    def run(number: int) -> Outcome:
        return Run(one_send(), open_testbed, out=tmp_path / str(number), tell=tell, start_gate=gate).execute().outcome

    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(run, range(AT_ONCE)))
    confirmed = outcomes.count(Outcome.CONFIRMED)
    figures(
        Figure(
            f"dating of a death, {AT_ONCE} testbeds at once",
            f"to {statistics.median(within_s) * 1000:.1f} ms, at worst {max(within_s) * 1000:.1f} ms",
            "a jiffy of 4 ms where HZ is 250",
            f"{confirmed} of {AT_ONCE} runs confirmed",
            f"within {DATED_S * 1000:.0f} ms",
            max(within_s) <= DATED_S,
        )
    )
    assert len(within_s) == AT_ONCE
    assert max(within_s) <= DATED_S


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
