"""The figure's time axis: seconds from the cut, linear around zero and logarithmic after it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lab.report.figure_style import GREY, INK
from lab.report.lanes import Lane
from lab.report.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """What the axis covers, and where an instant lies on it."""

    low: float
    """Seconds from the cut at the left edge, below zero."""

    high: float
    linear: float
    """Linear between minus and plus this, logarithmic beyond."""

    axes: "Axes"

    def fraction(self, t: float) -> float:
        """Where an instant lies: 0 at the left edge, 1 at the right one."""
        transform = self.axes.transData + self.axes.transAxes.inverted()
        return float(transform.transform((t, 0.0))[0])

    def inwards(self, t: float) -> tuple[Literal["left", "right"], float]:
        """Alignment and offset, in points, that keep an instant's label inside the axes."""
        return ("right", -5.0) if self.fraction(t) > 0.5 else ("left", 5.0)


def time_axis(axes: "Axes", record: Record, lanes: Sequence[Lane]) -> TimeAxis:
    """Scale, ticks and limits, so that everything in the lanes is on the axis."""
    first = min((lane.earliest_s for lane in lanes if lane.earliest_s is not None), default=0.1)
    linear = 10.0 ** min(1, max(-2, math.floor(math.log10(first))))
    ends = [record.horizon_s or 0.0, record.fault.healed_s or 0.0, 10 * linear]
    axis = TimeAxis(-0.6 * linear, 1.12 * max([*ends, *(lane.latest_s for lane in lanes)]), linear, axes)
    axes.set_xscale("symlog", linthresh=linear, linscale=0.5)
    axes.set_xlim(axis.low, axis.high)
    major = list(_ticks(axis))
    axes.set_xticks(major, [f"{tick:g}" for tick in major])
    axes.set_xticks(
        [tick for decade in _decades(axis) for step in range(2, 10) if (tick := step * decade) <= axis.high], minor=True
    )
    axes.set_yticks([])
    axes.set_xlabel("seconds from the cut", fontsize=9, color=INK, labelpad=2)
    axes.tick_params(axis="x", which="major", length=5, labelsize=9, color=GREY)
    axes.tick_params(axis="x", which="minor", length=3, color=GREY)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    return axis


def _decades(axis: TimeAxis) -> list[float]:
    powers = range(round(math.log10(axis.linear)), math.floor(math.log10(axis.high)) + 1)
    return [10.0**power for power in powers]


def _ticks(axis: TimeAxis) -> Iterator[float]:
    """Zero and the decades, and steps between them where there is room."""
    decades = _decades(axis)
    steps = {1: (1, 2, 5), 2: (1, 2, 5), 3: (1, 2, 5), 4: (1, 3)}.get(len(decades), (1,))
    yield 0.0
    for decade in decades:
        yield from (step * decade for step in steps if step * decade <= axis.high)
