"""FINDINGS.md: the study's tables with ours beside them, and what the new ground showed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.study.figures import drawn
from lab.study.judgement import Row
from lab.study.ranges import MACHINE_S
from lab.study.scenario import Group, Quantity
from lab.study.scenarios import PUBLISHED
from lab.study.scenarios import sessions as count_sessions
from lab.study.statistics import median
from lab.study.table import ours, statistics, verdict

SAVED_S = 3.5
"""What a new session beside the resume attempts was to save: the window that the study's recovery waits out."""

SAVED_WITHIN_S = 0.3
"""Detections fall within half a second of one another, as the pings do."""

HEAD = f"""\
# Findings

The published study of lost live sessions, run again offline: the study's 43 sessions, and what it left open. Written by
`lab live study`. Every figure comes from events that the programs told and from captures; none is typed in.

Times are seconds of the session's clock. Where long waits are lapsed, that clock runs faster than the wall in them; a
lapsed server's TCP runs thirty times as fast on its own account, and its back-off is multiplied by thirty. Rows say
which they are. "Outside, as explained" is beyond the study's range and within a tolerance, with its reason.

The study's ranges and the lab's predictions were written down before the first run. What the machine may add to a time,
{MACHINE_S:g} s, was raised to that after it, for all rows alike: a session in which a program ran later is INVALID; and
what BR1-no-note says of a booking that is made was compared later. A verdict is about the figures under "ours"; the
words beside them may say more than is measured here.

The session server draws how long its own answers take (refusals, setups, announcements, calls issued again) from the
study's ranges: that these times lie there shows only that nothing else adds much. Counts, answers, bookings, detection,
the resume window, the gaps and the back-off of TCP come out of the rules and the kernels.
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was run."""

    kernel: str
    cores: int
    took_s: float | None
    """Wall seconds of the whole study; None where it was put together from several."""

    backend: str


def findings(rows: Sequence[Row], machine: Machine) -> str:
    """The page."""
    parts = [HEAD, _summary(rows, machine), *_figures(rows)]
    for group in Group:
        members = [row for row in rows if row.scenario.group is group]
        if members:
            parts += [f"## {group.value.capitalize()}", _table(members), *_reasons(members)]
    parts += list(_comparison(rows))
    parts += list(_settling(rows))
    parts += ["## Statistics", _STATISTICS, *_statistics(rows)]
    parts += list(_again(rows))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


_STATISTICS = "Proportions with Wilson's 95 % interval; times with quantiles, and the median's own 95 % interval."


def _summary(rows: Sequence[Row], machine: Machine) -> str:
    published = [row for row in rows if row.scenario.published]
    new = [row for row in rows if not row.scenario.published]
    sessions = sum(len(row.sessions) for row in rows)
    wrong = sum(row.double_bookings for row in rows if row.scenario.wrong_on_purpose)
    double = sum(row.double_bookings for row in rows) - wrong
    kinds = {row.real for row in rows}
    waits = "real or lapsed, as each row says" if len(kinds) > 1 else "real" if kinds == {True} else "lapsed"
    within = "" if machine.took_s is None else f" in {machine.took_s:.0f} s"
    ran = f"{sessions} sessions{within} on {machine.cores} cores; Linux {machine.kernel}"
    in_range, modelled = (sum(row.in_range is True for row in published), sum(row.passed for row in published))
    example = f", and {wrong} in the example that is wrong on purpose" if wrong else ""
    lines = [f"- {ran}, {machine.backend}; waits {waits}."]
    if published:
        lines.append(f"- The study's rows: {in_range} of {len(published)} in its range, {modelled} as modelled.")
        counted, of = _counted(published), count_sessions(PUBLISHED)
        if counted < of:
            lines.append(f"- Of the study's {of} sessions {counted} count here; a row says how many it has under n.")
    lines.append(f"- Double bookings: {double}{example}.")
    if new:
        lines.append(f"- New ground: {sum(row.passed for row in new)} of {len(new)} predictions held.")
    return "\n".join(lines)


def _counted(published: Iterable[Row]) -> int:
    """How many of the study's sessions have one here; those with real and with lapsed waits are the same."""
    most: dict[str, int] = {}
    for row in published:
        most[row.scenario.id] = max(most.get(row.scenario.id, 0), min(len(row.valid), row.scenario.n))
    return sum(most.values())


def _figures(rows: Sequence[Row]) -> Iterator[str]:
    """Those that ``figures.render`` draws."""
    names = drawn(rows)
    if "lockout" in names:
        yield "![When attempts to resume were refused and accepted](figures/lockout.svg)"
    if "recovery" in names:
        yield "![From the loss to the first audio](figures/recovery.svg)"


def _table(rows: Iterable[Row]) -> str:
    published = any(row.scenario.published for row in rows)
    other = "the study" if published else "predicted"
    lines = [_line(("id", "n", "what", "ours", other, "")), _line(["---"] * 6)]
    for row in rows:
        scenario = row.scenario
        said = scenario.study or scenario.prediction
        mark = f"{verdict(row)}{_waits(row)}"
        lines.append(_line((scenario.id, str(len(row.valid)), scenario.title, ours(row), said, mark)))
    return "\n".join(lines)


def _waits(row: Row) -> str:
    """Whether something in the row was hurried, or could have been and was not."""
    hurried = _lapses(row)
    return "; lapsed" if hurried else "; real waits" if row.real and row.scenario.real else ""


def _lapses(row: Row) -> bool:
    """Whether its waits were hurried, or its kernel."""
    variants = [row.scenario.variant(each.number, real=row.real) for each in row.sessions]
    return any(each.kernel.factor != 1 or any(step["do"] == "lapse" for step in each.steps) for each in variants)


def _reasons(rows: Iterable[Row]) -> Iterator[str]:
    lines = [f"- {row.scenario.id}: {_escaped(reason)}" for row in rows for reason in row.reasons]
    if lines:
        yield "Not in range, and why:\n\n" + "\n".join(lines)


def _comparison(rows: Sequence[Row]) -> Iterator[str]:
    """What a new session beside the resume attempts saves."""
    saved_s = saved(rows)
    if saved_s is None:
        return
    held = "so it does" if saved_s >= SAVED_S - SAVED_WITHIN_S else "it does not"
    yield "## What the parallel recovery saves"
    yield (
        f"The median gap from the loss to the first audio is {saved_s:.2f} s shorter than that of BR1 in the same run. "
        f"It was to save the window, {SAVED_S:g} s, give or take {SAVED_WITHIN_S:g} s for detections that fall "
        f"differently: {held}."
    )


def saved(rows: Iterable[Row]) -> float | None:
    """Seconds that the parallel recovery saves in the median; None where either was not run."""
    gaps = {
        row.scenario.id: [value for each in row.valid for value in each.values.get(Quantity.FIRST_AUDIO_S, ())]
        for row in rows
    }
    alone, beside = gaps.get("BR1"), gaps.get("BR1-parallel")
    return median(alone) - median(beside) if alone and beside else None


def _settling(rows: Sequence[Row]) -> Iterator[str]:
    """Which settle times would have shown a client what the study's clients saw."""
    swept = [row for row in rows if row.scenario.group is Group.SWEEP and row.valid]
    if not swept:
        return
    yield "## What the sweep says"
    agreeing = [f"{_settle_s(row):g}" for row in swept if agrees_with_study(row)]
    wrong = [f"{_settle_s(row):g}" for row in swept if not row.passed]
    edge = f"all but {', '.join(wrong)} s" if wrong else "every one above 0"
    yield (
        "The study saw a refusal at once and none at about 1.5 s. Of the settle times that were swept these show a "
        f"client the same: {', '.join(agreeing) or 'none'} s. With {edge}, an attempt 0.15 s before its end was "
        "refused and one 0.05 s after it accepted: so close can a client come to a server's value."
    )


def _settle_s(row: Row) -> float:
    return float(str(row.scenario.server.settings["settle_s"]))


def agrees_with_study(row: Row) -> bool:
    """Whether an attempt at once was refused, and the one at 1.6 s accepted."""
    first = [each for each in row.valid if each.number == 0]
    last = [each for each in row.valid if each.number == row.scenario.n - 1]
    return (
        bool(first and last)
        and all(each.total(Quantity.REFUSED) for each in first)
        and all(each.total(Quantity.ACCEPTED) for each in last)
    )


def _statistics(rows: Iterable[Row]) -> Iterator[str]:
    head = _line(("id", "what", "n", "share or median", "95 %", "5 % to 95 %"))
    lines = [head, _line(["---"] * 6)]
    for row in rows:
        lines += [_line((row.scenario.id, *_cells(each))) for each in statistics(row)]
    yield "\n".join(lines)


def _cells(figure: dict[str, object]) -> tuple[str, ...]:
    if "k" in figure:
        k, n = figure["k"], figure["n"]
        return (str(figure["what"]), f"{k} of {n}", f"{float(str(k)) / float(str(n)):.1%}", _share(figure), "")
    within = figure["median_within"]
    between = f"{within[0]:.3f} to {within[1]:.3f}" if isinstance(within, list) else ""
    tails = f"{figure['q05']:.3f} to {figure['q95']:.3f}"
    return (str(figure["what"]), str(figure["n"]), f"{figure['median']:.3f} s", between, tails)


def _share(figure: dict[str, object]) -> str:
    return f"{figure['low']:.1%} to {figure['high']:.1%}"


def _again(rows: Iterable[Row]) -> Iterator[str]:
    repeated = [(row, each) for row in rows for each in row.sessions if each.again or each.invalid]
    if repeated:
        lines = [
            f"- {row.scenario.id}, session {each.number + 1}: {_escaped(reason)}"
            for row, each in repeated
            for reason in (*each.again, *each.invalid)
        ]
        yield "## INVALID and run again"
        yield (
            "A session that could not prove itself is no result. Where the machine was too busy it was run again, up "
            "to four times; every reason is here, that of a last try that was INVALID too:\n\n" + "\n".join(lines)
        )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    """On one line, with what Markdown would read as its own taken literally."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in flat)
