"""Shapes, colours and measures of the figure.

The colours are Okabe and Ito's, safe for colour-blind readers; a mark's shape tells its class without them.
"""

from dataclasses import dataclass
from typing import Any

from lab.report.lanes import MarkKind

WIDTH, HEIGHT = 800.0, 490.0
"""Pixels that the layout is thought in; the PNG has twice as many each way."""

DPI = 100
"""Pixels of the layout per inch."""

LEFT, RIGHT, TOP = 84.0, 16.0, 106.0
"""Margins around the lanes; above them stand the title and the names of the instants."""

LANE, GAP = 130.0, 8.0
"""Height of a lane, and the space between the two."""

HEADING, KERNEL, SEGMENTS, PREDICTED, PROGRAM = 11.0, 36.0, 63.0, 91.0, 117.0
"""Rows of a lane, from its top down."""

PANEL = 23.0
"""Where the heading ends and the coloured ground begins."""

BLACK, BLUE, SKY, GREEN = "#000000", "#0072B2", "#56B4E9", "#009E73"
VERMILION, ORANGE, PURPLE = "#D55E00", "#E69F00", "#CC79A7"
INK, GREY, DARK, LIGHT = "#1A1A1A", "#5F5F5F", "#E9E9EE", "#F7F7F9"

RC: dict[Any, Any] = {
    "svg.hashsalt": "blackhole-lab",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "hatch.color": "#C8C8CE",
    "hatch.linewidth": 0.6,
}
"""The font comes with matplotlib, and text is drawn as outlines: it looks the same everywhere."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the segments of one class are drawn."""

    label: str
    marker: str
    colour: str
    filled: bool = True
    size: float = 7.0
    """Points."""


LOOKS = {
    MarkKind.TALK: Look("new data", "|", GREY, size=8.0),
    MarkKind.FIRST_LOST: Look("first segment lost", "X", BLACK, size=8.0),
    MarkKind.TAIL_LOSS_PROBE: Look("tail-loss probe", "D", VERMILION, filled=False, size=6.0),
    MarkKind.TIMEOUT_COPY: Look("timeout copy", "o", BLUE),
    MarkKind.FAST_COPY: Look("fast copy", ">", ORANGE),
    MarkKind.SPURIOUS_COPY: Look("spurious copy", "s", PURPLE),
    MarkKind.SYN_COPY: Look("SYN copy", "^", BLUE),
    MarkKind.FIN_COPY: Look("FIN copy", "v", BLUE),
    MarkKind.KEEPALIVE_PROBE: Look("keepalive probe", "P", GREEN),
    MarkKind.WINDOW_PROBE: Look("window probe", "h", GREEN, filled=False, size=8.0),
    MarkKind.COPY: Look("copy", "o", GREY),
}
