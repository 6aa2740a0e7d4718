"""The figure of a run: what each end sent into the hole and when it gave up, measured above predicted.

One lane per end on a common time axis (seconds from the cut, logarithmic, linear around zero). In a lane, from top to
bottom: the prediction in words, the kernel's end, the segments as measured, the copies as predicted, the program's end.

The same record and timeline give the same bytes, with the same matplotlib.
"""

import io
from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from lab.report.figure_axis import TimeAxis, time_axis
from lab.report.figure_lane import draw_lane
from lab.report.figure_style import (
    BLACK,
    BLUE,
    DARK,
    DPI,
    GAP,
    GREEN,
    GREY,
    HEIGHT,
    LANE,
    LEFT,
    LOOKS,
    ORANGE,
    PANEL,
    RC,
    RIGHT,
    TOP,
    VERMILION,
    WIDTH,
)
from lab.report.lanes import Lane, lanes
from lab.report.record import Outcome, Record
from lab.report.timeline import Timeline
from lab.report.units import brief, seconds
from lab.report.verdict import is_limited

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OUTCOME_COLOURS = {Outcome.CONFIRMED: GREEN, Outcome.REFUTED: VERMILION}
_TOPS = (0.0, LANE + GAP)
"""Upper edges of the two lanes, below the upper edge of the axes."""

_REASON_LETTERS = 105
"""What fits the width."""

_CUT_WORDS = {"both": "cut both ways", "forward": "client to server cut", "return": "server to client cut"}


def render(record: Record, timeline: Timeline) -> dict[str, bytes]:
    """The figure's files.

    Args:
        record: What was predicted and measured.
        timeline: Where the segments beside the copies come from; may be empty.

    Returns:
        ``figure.png`` (twice the layout's pixels each way) and ``figure.svg``, by name.
    """
    import matplotlib as mpl

    png, svg = io.BytesIO(), io.BytesIO()
    with mpl.rc_context():
        # A reader's own matplotlibrc must not change how the evidence looks.
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        figure = _draw(record, timeline)
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return {"figure.png": png.getvalue(), "figure.svg": svg.getvalue()}


def _draw(record: Record, timeline: Timeline) -> "Figure":
    from matplotlib.figure import Figure

    drawn = lanes(record, timeline)
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=2 * DPI, facecolor="white")
    height = 2 * LANE + GAP
    box = (LEFT / WIDTH, 1 - (TOP + height) / HEIGHT, 1 - (LEFT + RIGHT) / WIDTH, height / HEIGHT)
    axes = figure.add_axes(box, facecolor="none")
    axes.set_ylim(height, 0)
    axis = time_axis(axes, record, drawn)
    for lane, top in zip(drawn, _TOPS, strict=True):
        draw_lane(axes, lane, top, axis, record)
    _instants(axes, axis, record)
    _title(figure, record)
    _legend(figure, drawn)
    return figure


def _title(figure: "Figure", record: Record) -> None:
    colour = _OUTCOME_COLOURS.get(record.outcome, GREY)
    verdict = record.outcome.value.upper()
    if is_limited(record) and record.horizon_s is not None:
        verdict += f" up to the horizon of {brief(record.horizon_s)}"
    left = LEFT / WIDTH
    figure.text(left, 1 - 20 / HEIGHT, verdict, va="center", fontsize=13, weight="bold", color=colour)
    cut = record.fault.direction
    what = "never cut" if record.fault.cut_at is None or cut is None else _CUT_WORDS[cut.value]
    where = f"{record.flow.client or '?'} > {record.flow.server or '?'}"
    figure.text(left, 1 - 41 / HEIGHT, f"{where}, {what}, {record.backend}", va="center")
    if record.reason:
        figure.text(left, 1 - 58 / HEIGHT, shorten(record.reason, _REASON_LETTERS, placeholder=" ..."), va="center")


def _instants(axes: "Axes", axis: TimeAxis, record: Record) -> None:
    """The cut, the heal and the end of the watch: lines through both lanes, with their names above."""
    if record.fault.cut_at is None:
        return
    healed, horizon = record.fault.healed_s, record.horizon_s
    crowded = healed is not None and axis.fraction(healed) - axis.fraction(0) < 0.15
    _through(axes, 0, "cut", BLACK, -9, "right" if crowded else "center")
    if healed is not None:
        align = "left" if crowded else "right" if axis.fraction(healed) > 0.85 else "center"
        _through(axes, healed, f"healed at {seconds(healed)}", GREEN, -9, align)
    if horizon is not None:
        _through(axes, horizon, f"watched for {brief(horizon)}", GREY, -24, axis.inwards(horizon)[0])
        if axis.fraction(horizon) < 0.98:
            for top in _TOPS:
                axes.broken_barh(
                    [(horizon, axis.high - horizon)],
                    (top + PANEL, LANE - PANEL),
                    facecolor="none",
                    hatch="////",
                    linewidth=0,
                    zorder=1,
                )


def _through(axes: "Axes", t: float, words: str, colour: str, row: float, align: str) -> None:
    style = ":" if row < -20 else "-"
    axes.plot(
        [t, t], [row + 6, 2 * LANE + GAP], color=colour, lw=1.2, ls=style, zorder=3, clip_on=False, gid=words.split()[0]
    )
    axes.annotate(words, (t, row), ha=align, va="center", color=colour, annotation_clip=False)


def _legend(figure: "Figure", drawn: Sequence[Lane]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    present = {mark.kind for lane in drawn for mark in lane.marks}
    branches = [lane.predicted for lane in drawn if lane.predicted is not None]
    handles: list[Artist] = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=look.marker,
            markersize=look.size,
            label=look.label,
            markerfacecolor=look.colour if look.filled else "white",
            markeredgecolor=look.colour,
            markeredgewidth=1.2,
        )
        for kind, look in LOOKS.items()
        if kind in present
    ]
    if any(branch.copy_windows_s for branch in branches):
        handles.append(Patch(facecolor="white", edgecolor=BLUE, label="copy, predicted"))
    if any(branch.window_s is not None for branch in branches):
        handles.append(Patch(facecolor=ORANGE, alpha=0.45, label="give-up, predicted"))
    if any(lane.dark for lane in drawn):
        handles.append(Patch(facecolor=DARK, label="flow is dark"))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=((LEFT - 8) / WIDTH, 1 - (TOP + 2 * LANE + GAP + 42) / HEIGHT),
        ncols=4,
        frameon=False,
        fontsize=9,
        borderpad=0,
        handletextpad=0.5,
        columnspacing=1.6,
        labelspacing=0.5,
    )
