"""Two figures of a study on a logarithmic time axis: the lockout, and the recovery.

The same rows give the same bytes, with the same matplotlib.
"""

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lab.report.figure_style import BLACK, BLUE, DPI, GREEN, GREY, LIGHT, ORANGE, RC, SKY, VERMILION, WIDTH
from lab.study.judgement import Row
from lab.study.scenario import Group, Quantity
from lab.study.statistics import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LANE, TOP, BOTTOM, LEFT, RIGHT = 22.0, 74.0, 46.0, 186.0, 16.0
"""Pixels of the layout: a scenario's lane, and what is around them all."""

LINEAR_S = 1.0
"""Linear below a second, logarithmic above."""

TICKS_S = (0, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 900)


def render(rows: Sequence[Row]) -> dict[str, bytes]:
    """The figures' files by name; a figure that nothing belongs on is left out."""
    draw = {"lockout": _lockout, "recovery": _recovery}
    files: dict[str, bytes] = {}
    for name, members in drawn(rows).items():
        files |= _files(name, partial(draw[name], members))
    return files


def drawn(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Which figures there are, and the rows on each."""
    tried = [row for row in rows if _all(row, Quantity.REFUSED_AT_S) or _all(row, Quantity.ACCEPTED_AT_S)]
    locked = [row for row in tried if row.scenario.group is not Group.SWEEP]
    told = [row for row in rows if _all(row, Quantity.FIRST_AUDIO_S)]
    return {name: members for name, members in (("lockout", locked), ("recovery", told)) if members}


def _files(name: str, draw: Callable[[], "Figure"]) -> dict[str, bytes]:
    import matplotlib as mpl

    png, svg = io.BytesIO(), io.BytesIO()
    with mpl.rc_context():
        # A reader's own matplotlibrc must not change how the evidence looks.
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        figure = draw()
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return {f"{name}.png": png.getvalue(), f"{name}.svg": svg.getvalue()}


def _lockout(rows: Sequence[Row]) -> "Figure":
    """Every attempt to resume, refused or accepted, by when it began."""
    figure, axes = _sheet("When the server refused to resume", rows)
    for lane, row in enumerate(rows):
        refused, accepted = _all(row, Quantity.REFUSED_AT_S), _all(row, Quantity.ACCEPTED_AT_S)
        ends = [min(refused), max(refused)] if refused else []
        axes.plot(ends, [lane] * len(ends), color=VERMILION, linewidth=1.2, alpha=0.5)
        axes.plot(refused, [lane] * len(refused), "x", color=VERMILION, markersize=5, label="refused")
        axes.plot(accepted, [lane] * len(accepted), "o", color=GREEN, markersize=6, label="accepted")
        closes = _all(row, Quantity.SILENT_UNTIL_S) if _closes(row) else ()
        axes.plot(closes, [lane] * len(closes), "|", color=BLACK, markersize=14, label="the server's own close")
    _legend(figure, axes)
    return figure


def _closes(row: Row) -> bool:
    """Whether the server's first segment after the loss is its close: the model was idle."""
    return row.scenario.id in ("B1", "P4", "healed-after-close")


def _recovery(rows: Sequence[Row]) -> "Figure":
    """From the loss to the first audio: the medians as bars, the sessions as points."""
    figure, axes = _sheet("From the loss to the first audio", rows)
    for lane, row in enumerate(rows):
        instants = [median(found) for each in _STAGES if (found := _all(row, each))]
        names = [_NAMES[each] for each in _STAGES if _all(row, each)]
        colours = [_COLOURS[each] for each in _STAGES if _all(row, each)]
        for begin, end, name, colour in zip([0.0, *instants], instants, names, colours, strict=False):
            axes.barh(lane, end - begin, left=begin, height=0.55, color=colour, label=name)
        heard = _all(row, Quantity.FIRST_AUDIO_S)
        axes.plot(heard, [lane] * len(heard), ".", color=BLACK, markersize=5, label="first audio, each session")
    _legend(figure, axes)
    return figure


_STAGES = (Quantity.DETECTED_S, Quantity.FALLBACK_S, Quantity.FIRST_AUDIO_S)
_NAMES = dict(zip(_STAGES, ("until detection", "until the new session", "until the first audio"), strict=True))
_COLOURS = dict(zip(_STAGES, (ORANGE, SKY, BLUE), strict=True))


def _all(row: Row, quantity: Quantity) -> tuple[float, ...]:
    return tuple(value for each in row.valid for value in each.values.get(quantity, ()))


def _sheet(title: str, rows: Sequence[Row]) -> "tuple[Figure, Axes]":
    """A lane for each row, on the time axis."""
    from matplotlib.figure import Figure

    height = TOP + BOTTOM + LANE * len(rows)
    figure = Figure(figsize=(WIDTH / DPI, height / DPI), dpi=2 * DPI, facecolor="white")
    box = (LEFT / WIDTH, BOTTOM / height, 1 - (LEFT + RIGHT) / WIDTH, LANE * len(rows) / height)
    axes = figure.add_axes(box, facecolor="none")
    latest = max(value for row in rows for quantity in (*_STAGES, *_INSTANTS) for value in _all(row, quantity))
    axes.set_xscale("symlog", linthresh=LINEAR_S, linscale=0.6)
    axes.set_xlim(-0.1, 1.15 * latest)
    ticks = [tick for tick in TICKS_S if tick <= 1.15 * latest]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [f"{row.scenario.id} (n={len(row.valid)})" for row in rows])
    axes.set_xlabel("seconds from the loss, session time")
    axes.tick_params(axis="y", length=0)
    for lane in range(0, len(rows), 2):
        axes.axhspan(lane - 0.5, lane + 0.5, color=LIGHT, zorder=0)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    figure.text(LEFT / WIDTH, 1 - 18 / height, title, va="center", fontsize=13, weight="bold", color=GREY)
    return figure, axes


_INSTANTS = (Quantity.REFUSED_AT_S, Quantity.ACCEPTED_AT_S, Quantity.SILENT_UNTIL_S)


def _legend(figure: "Figure", axes: "Axes") -> None:
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    _, height = figure.get_size_inches() * DPI
    figure.legend(
        once.values(),
        once.keys(),
        loc="upper left",
        bbox_to_anchor=(LEFT / WIDTH - 0.01, 1 - 30 / height),
        ncols=4,
        frameon=False,
        fontsize=8,
    )
