"""The same experiment on both backends, compared: verdict, cause, copies, and the give-up to one timer tick.

Two runs of one experiment never lose their first segment at the same phase of the kernel's timer wheel, and never have
quite the same RTO. So give-ups are compared by where in its own predicted window each came, and may differ by one
bucket of the wheel for the longest wait, which is what the phase can change, and by a jiffy for each wait that is
rounded to jiffies. Where the bound falls on an expiry for one of them only, the earliest instant predicted for the last
copy takes the window's place; runs that died at different expiries, both predicted, are compared by cause and copies.
How many copies an end sent that lived on, until a heal or its program's close, hangs on when that came, and is judged
in each run alone.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.core.timerwheel import DEFAULT_HZ, granularity, to_jiffies
from lab.report.record import Branch, Cause, EndObservation, EndPrediction, Record

BACKENDS = ("netns", "docker")

HEAD = """\
# The same experiments on both backends

Written by `pytest lab/ --backend both --lab-equivalence docs/equivalence.md`; `make equivalence` does it. Every
experiment runs in namespaces and in containers in one session. Give-up times are seconds from the first lost send, or
from what an idle end's prediction counts from. How far apart: each in its own predicted window, since RTO and RTT
differ; a tick is the bucket of the kernel's timer wheel for the longest wait. Where one number of copies was seen on
each backend, the prediction had both, a whole wait apart, or each run's own prediction had its own: more in flight, or
another RTO. An end that lived on sent copies until its path was healed or its program closed it, which is no give-up.

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
    """None where any number is, and of an end that lived on."""

    gave_up_s: float | None
    """From its origin: the first lost send, or what an idle end's prediction counts from."""

    in_window_s: float | None
    """From the beginning of its predicted window."""

    after_copy_s: float | None
    """From the earliest instant that was predicted for its last copy; None where there was none."""

    window_s: float
    """How long its predicted window is: longer by a whole wait where the bound falls on an expiry."""

    known_to_s: float
    """How exactly these are known, plus or minus."""

    waits_s: tuple[float, ...]
    """From the origin to the first copy, and so on to the give-up."""


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
        longest = max((*self.netns.waits_s, *self.docker.waits_s), default=0.0)
        return granularity(to_jiffies(longest, self.hz)) / self.hz

    @property
    def allowed_s(self) -> float:
        """How far apart two runs may be: a tick, a jiffy for each wait of the first level, what is not known."""
        short = sum(1 for wait in self.netns.waits_s if granularity(to_jiffies(wait, self.hz)) == 1)
        return self.tick_s + short / self.hz + self.netns.known_to_s + self.docker.known_to_s

    @property
    def apart_s(self) -> float | None:
        """How far the give-ups lie apart; None where there was none, or where another expiry came first."""
        if self.netns.copies != self.docker.copies:
            return None
        same_window = abs(self.netns.window_s - self.docker.window_s) < self.tick_s
        one, other = (end.in_window_s if same_window else end.after_copy_s for end in (self.netns, self.docker))
        return None if one is None or other is None else abs(other - one)

    def differences(self) -> Iterator[str]:
        """What the backends do not have in common, as sentences."""
        if self.netns.cause != self.docker.cause:
            yield f"{self.name}: cause {self.netns.cause} in namespaces, {self.docker.cause} in containers"
        if not self._same_copies():
            yield f"{self.name}: {self.netns.copies} copies in namespaces, {self.docker.copies} in containers"
        if (self.netns.gave_up_s is None) != (self.docker.gave_up_s is None):
            yield f"{self.name}: gave up on one backend only"
        elif self.apart_s is not None and self.apart_s > self.allowed_s:
            yield (
                f"{self.name}: gave up {self.apart_s * 1000:.0f} ms apart, {self.allowed_s * 1000:.0f} are allowed "
                f"(a tick of {self.tick_s * 1000:.0f})"
            )

    def _same_copies(self) -> bool:
        """Equal; or two that were predicted: a bound falls on a tick, a program writes on, or each has its own."""
        if self.netns.copies == self.docker.copies:
            return True
        otherwise = self.netns.copies_predicted != self.docker.copies_predicted
        return all(
            end.copies_predicted is None
            or (
                (otherwise or end.copies_predicted[0] != end.copies_predicted[1])
                and end.copies_predicted[0] <= end.copies <= end.copies_predicted[1]
            )
            for end in (self.netns, self.docker)
        )


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
    exact = sum(1 for pair in apart if pair.apart_s is not None and pair.apart_s <= pair.tick_s)
    return (
        f"Linux {', '.join(sorted(filter(None, kernels)))}; {len(runs)} experiments on both, {unequal} of them with a "
        f"difference; {len(apart)} give-ups at the same expiry on both, {exact} of them within one tick as measured; a "
        "difference is more than a tick, a jiffy for each short wait and the dating leave open."
    )


def _rows(name: str, netns: Record, docker: Record) -> Iterator[str]:
    test = name.rpartition("/")[2].removeprefix("test_").replace(".py::test_", ": ").replace("|", "/")
    pairs = compare(netns, docker)
    telling = [pair for pair in pairs if pair.netns.gave_up_s is not None] or pairs[:1]
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
    branch, gave_up_s = prediction.branch, seen.gave_up_s
    low, high = (0.0, 0.0) if branch is None or branch.window_s is None else branch.window_s
    instants = (branch.origin_s, *seen.copy_times_s, gave_up_s) if branch is not None and gave_up_s is not None else ()
    last_copy = _earliest_last_copy(branch, seen)
    return End(
        cause=seen.cause.value if seen.cause is not None else "none",
        copies=seen.copies or 0,
        copies_predicted=None if branch is None or seen.cause in (None, Cause.NONE) else branch.copies,
        gave_up_s=gave_up_s - branch.origin_s if branch is not None and gave_up_s is not None else None,
        in_window_s=gave_up_s - low if high and gave_up_s is not None else None,
        after_copy_s=None if gave_up_s is None or last_copy is None else gave_up_s - last_copy,
        window_s=high - low,
        known_to_s=seen.gave_up_within_s or 0.0,
        waits_s=tuple(later - earlier for earlier, later in itertools.pairwise(instants)),
    )


def _earliest_last_copy(branch: Branch | None, seen: EndObservation) -> float | None:
    if branch is None or not seen.copies or seen.copies > len(branch.copy_windows_s):
        return None
    return branch.copy_windows_s[seen.copies - 1][0]
