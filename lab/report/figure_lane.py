"""One lane of the figure: an end's segments between its kernel's fate above and its program's below."""

from typing import TYPE_CHECKING

from lab.report.figure_axis import TimeAxis
from lab.report.figure_style import (
    BLUE,
    DARK,
    GREEN,
    GREY,
    HEADING,
    INK,
    KERNEL,
    LANE,
    LIGHT,
    LOOKS,
    ORANGE,
    PANEL,
    PREDICTED,
    PROGRAM,
    PURPLE,
    SEGMENTS,
    VERMILION,
)
from lab.report.lanes import Lane
from lab.report.record import EndObservation, NoticedBy, Record
from lab.report.units import copies, seconds, window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = {"kernel": KERNEL, "segments": SEGMENTS, "predicted": PREDICTED, "program": PROGRAM}


def draw_lane(axes: "Axes", lane: Lane, top: float, axis: TimeAxis, record: Record) -> None:
    """Draw a lane.

    Args:
        axes: Where; its y axis counts layout pixels downwards.
        lane: What.
        top: The lane's upper edge.
        axis: The time axis.
        record: For the span in which the flow was dark.
    """
    _ground(axes, lane, top, axis, record)
    _words(axes, lane, top, record)
    _prediction(axes, lane, top)
    for kind, look in LOOKS.items():
        times = [mark.t_s for mark in lane.marks if mark.kind is kind and mark.t_s >= axis.low]
        if times:
            axes.plot(
                times,
                [top + SEGMENTS] * len(times),
                linestyle="none",
                marker=look.marker,
                markersize=look.size,
                markerfacecolor=look.colour if look.filled else "white",
                markeredgecolor=look.colour if look.marker == "|" or not look.filled else "white",
                markeredgewidth=1.4 if not look.filled else 0.6 if look.marker != "|" else 1.0,
                zorder=5,
                gid=f"{lane.end}-{kind.value}",
            )
    _kernel(axes, lane, top, axis, record)
    _program(axes, lane, top, axis, record)


def _ground(axes: "Axes", lane: Lane, top: float, axis: TimeAxis, record: Record) -> None:
    y, height = top + PANEL, LANE - PANEL
    axes.broken_barh([(axis.low, axis.high - axis.low)], (y, height), facecolor=LIGHT, zorder=0)
    if lane.dark:
        end = min(t for t in (record.fault.healed_s, record.horizon_s, axis.high) if t is not None)
        axes.broken_barh([(0, end)], (y, height), facecolor=DARK, zorder=0.5, gid=f"{lane.end}-dark")


def _words(axes: "Axes", lane: Lane, top: float, record: Record) -> None:
    beside = axes.get_yaxis_transform()
    other = "server" if lane.end == "client" else "client"
    row = top + HEADING
    # On white, so that the lines of the cut and the heal stop at the words.
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    name = f"{lane.end} to {other}"
    axes.text(0, row, name, transform=beside, va="center", weight="bold", fontsize=10, bbox=ground, zorder=6)
    axes.text(
        1,
        row,
        "outside: kernel and program not observed"
        if lane.outside
        else _said(lane, healed=record.fault.healed_at is not None),
        transform=beside,
        va="center",
        ha="right",
        bbox=ground,
        zorder=6,
    )
    for word, row in _ROWS.items():
        axes.text(-0.012, top + row, word, transform=beside, va="center", ha="right", color=GREY)


def _said(lane: Lane, *, healed: bool) -> str:
    branch = lane.predicted
    if branch is None:
        return "no prediction applied"
    after = "" if branch.copies is None else f", {copies(branch.copies)}"
    if branch.window_s is None:
        return f"predicted{' if left open' if lane.closed else ''}: never gives up{after}"
    # The model knows of no heal: a healed flow's prediction is what the heal averts.
    said = "predicted without the heal" if healed else "predicted"
    if lane.closed:
        ends = f"{window(branch.window_s)} ({branch.cause.value})"
        return (
            f"predicted of the orphan: gone at {ends}{after}"
            if lane.of_orphan
            else f"predicted if left open: {ends}{after}"
        )
    return f"{said}: gives up at {window(branch.window_s)} ({branch.cause.value}){after}"


def _prediction(axes: "Axes", lane: Lane, top: float) -> None:
    branch = lane.predicted
    if branch is None:
        return
    if branch.copy_windows_s:
        axes.broken_barh(
            [(low, high - low) for low, high in branch.copy_windows_s],
            (top + PREDICTED - 7, 14),
            facecolor="white",
            edgecolor=BLUE,
            linewidth=1.1,
            zorder=4,
            gid=f"{lane.end}-predicted-copies",
        )
    if branch.window_s is not None:
        low, high = branch.window_s
        axes.broken_barh(
            [(low, high - low)],
            (top + SEGMENTS - 14, PREDICTED - SEGMENTS + 28),
            facecolor=ORANGE,
            edgecolor=ORANGE,
            linewidth=0.8,
            alpha=0.45,
            zorder=2,
            gid=f"{lane.end}-predicted-give-up",
        )


def _kernel(axes: "Axes", lane: Lane, top: float, axis: TimeAxis, record: Record) -> None:
    seen, label, end = lane.seen, top + KERNEL, top + SEGMENTS + 14
    if seen.gave_up_s is not None:
        words = f"gave up at {seconds(seen.gave_up_s)}{_brackets(_how(seen))}{_after(seen)}"
        _line(axes, seen.gave_up_s, (label - 8, end), VERMILION, f"{lane.end}-gave-up")
        _label(axes, axis, seen.gave_up_s, label, words, lane)
    elif lane.closed and seen.closed_s is not None:
        _closed(axes, lane, seen.closed_s, (label, end), axis)
    elif seen.recovered_s is not None:
        words = f"acknowledged again at {seconds(seen.recovered_s)}{_after(seen)}"
        _line(axes, seen.recovered_s, (label - 8, end), GREEN, f"{lane.end}-recovered")
        _label(axes, axis, seen.recovered_s, label, words, lane)
    elif record.horizon_s is not None and record.fault.cut_at is not None:
        if lane.outside:
            last = "" if seen.last_copy_s is None else f", the last at {seconds(seen.last_copy_s)}"
            _label(axes, axis, record.horizon_s, label, f"not observed{_after(seen)}{last}", lane, aside=True)
            return
        _label(axes, axis, record.horizon_s, label, f"no give-up while watched{_after(seen)}", lane, aside=True)


def _closed(axes: "Axes", lane: Lane, closed_s: float, rows: tuple[float, float], axis: TimeAxis) -> None:
    """The end of an orphan, or the close where none was seen."""
    orphan = lane.seen.orphan
    if orphan is None or orphan.gone_s is None:
        still = "" if orphan is None else ", the orphan there to the end"
        _label(axes, axis, closed_s, rows[0], f"closed by its program{still}", lane)
        return
    cause = [] if orphan.cause is None else [orphan.cause.value]
    after = "" if orphan.copies is None else f", {copies(orphan.copies)} after the close"
    _line(axes, orphan.gone_s, (rows[0] - 8, rows[1]), VERMILION, f"{lane.end}-orphan-gone")
    _label(
        axes, axis, orphan.gone_s, rows[0], f"orphan gone at {seconds(orphan.gone_s)}{_brackets(cause)}{after}", lane
    )


def _program(axes: "Axes", lane: Lane, top: float, axis: TimeAxis, record: Record) -> None:
    seen, label = lane.seen, top + PROGRAM
    if seen.noticed_s is not None:
        by = [] if seen.noticed_by is None else [seen.noticed_by.value]
        words = f"noticed at {seconds(seen.noticed_s)}{_brackets(by)}"
        if seen.by_itself:
            done = "exited" if seen.noticed_by is NoticedBy.EXIT else "closed its socket"
            words = f"{done} {'by' if seen.held_s is not None else 'at'} {seconds(seen.noticed_s)}"
        _line(axes, seen.noticed_s, (top + PREDICTED + 14, label + 8), PURPLE, f"{lane.end}-noticed")
        _label(axes, axis, seen.noticed_s, label, words, lane)
    elif seen.never_told and record.horizon_s is not None:
        _label(axes, axis, record.horizon_s, label, "never told", lane, aside=True)


def _line(axes: "Axes", t: float, rows: tuple[float, float], colour: str, gid: str) -> None:
    axes.plot([t, t], rows, color=colour, linewidth=2, solid_capstyle="butt", zorder=3.5, gid=gid)


def _label(axes: "Axes", axis: TimeAxis, t: float, row: float, words: str, lane: Lane, *, aside: bool = False) -> None:
    """Words beside an instant, with a halo of the ground so that lines behind them do not cut through."""
    from matplotlib.patheffects import withStroke

    align, offset = axis.inwards(t)
    axes.annotate(
        words,
        (t, row),
        xytext=(offset, 0),
        textcoords="offset points",
        ha=align,
        va="center",
        color=GREY if aside else INK,
        style="italic" if aside else "normal",
        path_effects=[withStroke(linewidth=3, foreground=DARK if lane.dark else LIGHT)],
        zorder=6,
    )


def _how(seen: EndObservation) -> list[str]:
    cause = None if seen.cause is None else seen.cause.value
    return [word for word in (cause, seen.errno) if word]


def _brackets(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _after(seen: EndObservation) -> str:
    return "" if seen.copies is None else f", {copies(seen.copies)}"
