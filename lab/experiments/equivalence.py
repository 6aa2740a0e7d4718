"""The same experiment on both backends, compared: verdict, cause, copies, and the give-up to one timer tick.

Two runs of one experiment never lose their first segment at the same phase of the kernel's timer wheel. So a give-up is
compared by how long after its own origin (the first lost send, or what the idle prediction counts from) it came, and
may differ by one bucket of the wheel for the longest wait in it, which is what the phase can change.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.core.timerwheel import DEFAULT_HZ, granularity, to_jiffies
from lab.report.record import EndObservation, EndPrediction, Record

BACKENDS = ("netns", "docker")

HEAD = """\
# The same experiments on both backends

Written by `pytest lab/ --backend both --lab-equivalence docs/equivalence.md`; `make equivalence` does it. Every
experiment runs in namespaces and in containers in one session. Give-up times are seconds from the first lost send, or
of an idle end from the beginning of its predicted window; a tick is the bucket of the kernel's timer wheel for the
longest wait. Two numbers of copies where one was seen on each backend, and the prediction had both.

{summary}

| experiment | end | verdicts | cause | copies | netns (s) | docker (s) | apart (ms) | tick (ms) |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True)
class End:
    """One end of one run, as it is compared."""

    cause: str
    copies: int
    copies_predicted: tuple[int, int] | None
    """None where any number is."""

    gave_up_s: float | None
    """From its origin."""

    known_to_s: float
    """How exactly that is known, plus or minus."""

    longest_wait_s: float


@dataclass(frozen=True, slots=True)
class Pair:
    """One end on both backends."""

    name: str
    """client or server."""

    hz: int
    """Of the kernel that both ran on."""

    netns: End
    docker: End

    @property
    def tick_s(self) -> float:
        """One bucket of the timer wheel for the longest wait that either run had."""
        longest = max(self.netns.longest_wait_s, self.docker.longest_wait_s)
        return granularity(to_jiffies(longest, self.hz)) / self.hz

    @property
    def apart_s(self) -> float | None:
        """How far the give-ups lie apart; None where there was none."""
        if self.netns.gave_up_s is None or self.docker.gave_up_s is None:
            return None
        return abs(self.docker.gave_up_s - self.netns.gave_up_s)

    def differences(self) -> Iterator[str]:
        """What the backends do not have in common, as sentences."""
        if self.netns.cause != self.docker.cause:
            yield f"{self.name}: cause {self.netns.cause} in namespaces, {self.docker.cause} in containers"
        if not self._same_copies():
            yield f"{self.name}: {self.netns.copies} copies in namespaces, {self.docker.copies} in containers"
        if (self.netns.gave_up_s is None) != (self.docker.gave_up_s is None):
            yield f"{self.name}: gave up on one backend only"
        elif self.apart_s is not None and self._same_expiry():
            known = self.netns.known_to_s + self.docker.known_to_s
            if self.apart_s > self.tick_s + known:
                yield (
                    f"{self.name}: gave up {self.apart_s * 1000:.0f} ms apart, a tick is {self.tick_s * 1000:.0f} ms "
                    f"(known to {known * 1000:.0f} ms)"
                )

    def _same_copies(self) -> bool:
        """Equal; or two that the prediction allows, where the bound falls on a tick or a program writes on."""
        if self.netns.copies == self.docker.copies:
            return True
        return all(
            end.copies_predicted is None
            or (
                end.copies_predicted[0] != end.copies_predicted[1]
                and end.copies_predicted[0] <= end.copies <= end.copies_predicted[1]
            )
            for end in (self.netns, self.docker)
        )

    def _same_expiry(self) -> bool:
        """Whether both died at the same expiry; else a whole wait lies between, and both were predicted."""
        return self.netns.copies == self.docker.copies


def compare(netns: Record, docker: Record) -> tuple[Pair, ...]:
    """Both ends of both runs."""
    pairs = []
    for name in ("client", "server"):
        ends = [_end(getattr(record.prediction, name), getattr(record.observation, name)) for record in (netns, docker)]
        pairs.append(Pair(name, netns.settings.hz or DEFAULT_HZ, *ends))
    return tuple(pairs)


def differences(netns: Record, docker: Record) -> list[str]:
    """All that the two runs do not have in common; empty where they are equivalent."""
    found = []
    if netns.outcome is not docker.outcome:
        one, other = (f"{record.outcome.value} ({record.reason})" for record in (netns, docker))
        found.append(f"{one} in namespaces, {other} in containers")
    return [*found, *(difference for pair in compare(netns, docker) for difference in pair.differences())]


def as_table(runs: Mapping[str, tuple[Record, Record]]) -> str:
    """One row for each end that gave up, or the client's where none did."""
    rows = [row for name, pair in runs.items() for row in _rows(name, *pair)]
    return HEAD.format(summary=summary(runs)) + "\n".join(rows) + "\n"


def summary(runs: Mapping[str, tuple[Record, Record]]) -> str:
    """All comparisons in one sentence."""
    unequal = sum(1 for pair in runs.values() if differences(*pair))
    apart = [pair for both in runs.values() for pair in compare(*both) if pair.apart_s is not None]
    kernels = {both[0].versions.kernel for both in runs.values()}
    worst = max((pair.apart_s / pair.tick_s for pair in apart if pair.apart_s is not None), default=0.0)
    return (
        f"Linux {', '.join(sorted(filter(None, kernels)))}; {len(runs)} experiments on both, {unequal} of them with a "
        f"difference; {len(apart)} give-ups on both, at worst {worst:.2f} ticks apart."
    )


def _rows(name: str, netns: Record, docker: Record) -> Iterator[str]:
    test = name.rpartition("/")[2].removeprefix("test_").replace(".py::test_", ": ").replace("|", "/")
    pairs = compare(netns, docker)
    telling = [pair for pair in pairs if pair.apart_s is not None] or pairs[:1]
    verdicts = _both(netns.outcome.value, docker.outcome.value)
    for pair in telling:
        cells = (
            test,
            pair.name,
            verdicts,
            _both(pair.netns.cause, pair.docker.cause),
            _both(str(pair.netns.copies), str(pair.docker.copies)),
            _seconds(pair.netns.gave_up_s),
            _seconds(pair.docker.gave_up_s),
            "" if pair.apart_s is None else f"{pair.apart_s * 1000:.0f}",
            "" if pair.apart_s is None else f"{pair.tick_s * 1000:.0f}",
        )
        yield f"| {' | '.join(cells)} |"


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one}, {other}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _end(prediction: EndPrediction, seen: EndObservation) -> End:
    branch = prediction.branch
    origin = seen.first_lost_s
    if origin is None and branch is not None and branch.window_s is not None:
        # What an idle end's prediction counts from is in the record as the shift of its window only.
        origin = branch.window_s[0]
    gave_up = None if seen.gave_up_s is None or origin is None else seen.gave_up_s - origin
    instants = [at for at in (origin, *seen.copy_times_s, seen.gave_up_s) if at is not None]
    waits = [later - earlier for earlier, later in itertools.pairwise(instants)]
    return End(
        cause=seen.cause.value if seen.cause is not None else "none",
        copies=seen.copies or 0,
        copies_predicted=None if branch is None or branch.copies is None else branch.copies,
        gave_up_s=gave_up,
        known_to_s=seen.gave_up_within_s or 0.0,
        longest_wait_s=max(waits, default=0.0),
    )
