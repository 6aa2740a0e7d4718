import functools
import itertools
import math
import re
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from lab.core.timeline import relative
from lab.report.figure import render
from lab.report.figure_style import WIDTH
from lab.report.record import Branch, Cause, EndObservation, NoticedBy, OrphanObservation, Record
from lab.report.timeline import Timeline
from tests.report.cases import ANCHOR, CASES, both_ways, busy_copies, healed, interrupted, keepalive, return_only

if TYPE_CHECKING:
    from matplotlib.transforms import Bbox

SVG = "{http://www.w3.org/2000/svg}"


def draw(case: str) -> dict[str, bytes]:
    record, observations = CASES[case]()
    return render(record, Timeline(tuple(relative(observations, ANCHOR)), 0))


drawn = functools.cache(draw)


def texts(record: Record) -> "list[tuple[str, Bbox]]":
    """Every text of the figure and where it stands."""
    import matplotlib as mpl
    from matplotlib.text import Text

    from lab.report.figure import _draw
    from lab.report.figure_style import RC

    with mpl.rc_context(RC):
        figure = _draw(record, Timeline((), 0))
        figure.draw_without_rendering()
        found = (text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible())
        # An annotation's own extent would include the instant that it names.
        return [(text.get_text(), Text.get_window_extent(text)) for text in found if text.get_text()]


def words(record: Record) -> set[str]:
    return {text for text, _ in texts(record)}


class Picture:
    """The SVG as a reader's browser has it: groups by id, x positions, and the axis as its tick labels say."""

    def __init__(self, svg: bytes) -> None:
        parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
        self.root = ElementTree.fromstring(svg, parser=parser)
        self.groups = {group.get("id"): group for group in self.root.iter(f"{SVG}g")}
        self.ticks = dict(self._ticks())

    def _ticks(self) -> list[tuple[float, float]]:
        found = []
        for name, group in self.groups.items():
            labels = [c.text or "" for c in group.iter() if not isinstance(c.tag, str)]
            if name and re.fullmatch(r"xtick_\d+", name) and labels:
                use = next(group.iter(f"{SVG}use"))
                found.append((float(labels[0]), float(use.get("x", "nan"))))
        return found

    def marks(self, gid: str) -> list[float]:
        return [float(use.get("x", "nan")) for use in self.groups[gid].iter(f"{SVG}use")]

    def line(self, gid: str) -> float:
        path = next(self.groups[gid].iter(f"{SVG}path")).get("d", "")
        xs = {float(x) for x in re.findall(r"[ML] (-?[\d.]+) ", path)}
        assert len(xs) == 1, f"{gid} is not vertical: {path}"
        return xs.pop()

    def bars(self, gid: str) -> list[tuple[float, float]]:
        paths = [path.get("d", "") for path in self.groups[gid].iter(f"{SVG}path")]
        xs = [[float(x) for x in re.findall(r"[ML] (-?[\d.]+) ", path)] for path in paths]
        return [(min(each), max(each)) for each in xs if each]

    def at(self, t: float) -> float:
        """Where an instant must lie, from the labels at 1 and 10 s alone: the axis is logarithmic there."""
        one, ten = self.ticks[1.0], self.ticks[10.0]
        return one + math.log10(t) * (ten - one)


def test_copies_lie_where_the_axis_says() -> None:
    picture = Picture(drawn("both-ways")["figure.svg"])
    probe, *copies = busy_copies(0.031)
    assert picture.marks("client-tail-loss-probe") == pytest.approx([picture.at(probe)], abs=0.1)
    assert picture.marks("client-timeout-copy") == pytest.approx([picture.at(t) for t in copies], abs=0.1)
    _, *copies = busy_copies(0.284)
    assert picture.marks("server-timeout-copy") == pytest.approx([picture.at(t) for t in copies], abs=0.1)


def test_the_first_lost_segment_lies_between_the_cut_and_the_first_copy() -> None:
    picture = Picture(drawn("both-ways")["figure.svg"])
    [first] = picture.marks("client-first-lost")
    assert picture.ticks[0.0] == pytest.approx(picture.line("cut"), abs=0.1)
    assert picture.line("cut") < first < picture.marks("client-tail-loss-probe")[0]
    [talk] = picture.marks("client-first")
    assert talk < picture.line("cut")


def test_the_end_is_drawn_beside_its_prediction() -> None:
    record, _ = both_ways()
    picture = Picture(drawn("both-ways")["figure.svg"])
    seen, branch = record.observation.client, record.prediction.client.branch
    assert branch is not None
    assert branch.window_s is not None
    [band] = picture.bars("client-predicted-give-up")
    assert band == pytest.approx([picture.at(t) for t in branch.window_s], abs=0.1)
    assert seen.gave_up_s is not None
    assert picture.line("client-gave-up") == pytest.approx(picture.at(seen.gave_up_s), abs=0.1)
    assert picture.line("client-noticed") == pytest.approx(picture.at(seen.noticed_s or 0), abs=0.1)
    assert len(picture.bars("client-predicted-copies")) == 16
    assert "gave up at 14.95 s (retries2, ETIMEDOUT), 16 copies" in words(record)


def test_the_heal_is_drawn_and_the_copy_that_got_through() -> None:
    record, _ = healed()
    picture = Picture(drawn("healed")["figure.svg"])
    recovered = record.observation.client.recovered_s
    assert recovered is not None
    assert picture.line("healed") == pytest.approx(picture.at(2.0), abs=0.1)
    assert picture.line("client-recovered") == pytest.approx(picture.at(recovered), abs=0.1)
    [dark] = picture.bars("client-dark")
    assert dark == pytest.approx((picture.line("cut"), picture.line("healed")), abs=0.1)


def test_keepalive_probes_have_marks_of_their_own() -> None:
    picture = Picture(drawn("keepalive")["figure.svg"])
    assert picture.marks("client-keepalive-probe") == pytest.approx([picture.at(t) for t in (3.2, 5.25, 7.3)], abs=0.1)
    assert keepalive()[0].reason in words(keepalive()[0])


def test_the_server_that_was_never_told_says_so() -> None:
    picture = Picture(drawn("return-only")["figure.svg"])
    said = words(return_only()[0])
    assert "never told" in said
    assert "server-gave-up" not in picture.groups
    assert "client-dark" not in picture.groups
    assert "server-dark" in picture.groups
    assert "CONFIRMED up to the horizon of 20 s" in said


@pytest.mark.parametrize("case", ["both-ways", "healed"])
def test_drawing_twice_gives_the_same_bytes(case: str) -> None:
    assert draw(case) == drawn(case)


def test_a_readers_own_matplotlib_settings_change_nothing() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 20, "svg.fonttype": "none", "lines.linewidth": 9, "savefig.dpi": 30}):
        assert draw("keepalive") == drawn("keepalive")
        assert mpl.rcParams["font.size"] == 20


def test_neither_file_holds_a_date() -> None:
    files = drawn("both-ways")
    assert b"date" not in files["figure.svg"].lower()
    assert b"tIME" not in files["figure.png"]
    assert files["figure.png"].startswith(b"\x89PNG")


def test_pyplot_stays_out_of_it() -> None:
    drawn("interrupted")
    assert "matplotlib.pyplot" not in sys.modules


def _given(**changes: object) -> Record:
    """The client's end as given, the rest as in a run both ways."""
    record, _ = both_ways()
    client = record.observation.client.model_copy(update=changes)
    return record.model_copy(update={"observation": record.observation.model_copy(update={"client": client})})


def _healed_at(seconds: float) -> Record:
    record, _ = healed()
    assert record.fault.cut_at is not None
    fault = record.fault.model_copy(update={"healed_at": record.fault.cut_at + seconds})
    return record.model_copy(update={"fault": fault})


def _long() -> Record:
    record, _ = both_ways()
    branch = Branch(cause=Cause.USER_TIMEOUT, window_s=(924.7, 946.5), copies=(15, 16))
    end = record.prediction.client.model_copy(update={"sending": branch})
    seen = EndObservation(first_lost_s=20.0, copies=16, gave_up_s=938.5, cause=Cause.USER_TIMEOUT, errno="ETIMEDOUT")
    return record.model_copy(
        update={
            "horizon_s": 1000.0,
            "prediction": record.prediction.model_copy(update={"client": end}),
            "observation": record.observation.model_copy(update={"client": seen}),
        }
    )


def _closed(predicted: Branch | None = None, **changes: object) -> Record:
    """The client's program closes by 3.358 s, and its orphan is gone 4 s later."""
    orphan = OrphanObservation(copies=2, gone_s=7.2, gone_within_s=0.003, cause=Cause.ORPHAN_RETRIES)
    signs = {"closed_s": 3.358, "noticed_s": 3.358, "noticed_by": NoticedBy.CLOSE, "gave_up_s": None, "errno": None}
    record = _given(**{**signs, "cause": Cause.NONE, "held_s": 3.1, "orphan": orphan, **changes})
    client = record.prediction.client.model_copy(update={"orphan": predicted, "closing": predicted})
    return record.model_copy(update={"prediction": record.prediction.model_copy(update={"client": client})})


_ORPHANED = Branch(cause=Cause.ORPHAN_RETRIES, window_s=(7.0, 7.5), copies=(1, 2), copy_windows_s=((0.2, 0.3),))


def test_an_orphans_end_is_drawn_beside_what_was_predicted_of_it() -> None:
    said = words(_closed(_ORPHANED))

    assert "predicted of the orphan: gone at 7.000 to 7.500 s (orphan-retries), 1 to 2 copies" in said
    assert "orphan gone at 7.200 s (orphan-retries), 2 copies after the close" in said
    assert "closed its socket by 3.358 s" in said
    assert not any("noticed at 3.358" in text for text in said)


def test_of_a_close_without_an_orphans_prediction_the_figure_shows_what_an_open_flow_would_have_done() -> None:
    said = words(_closed(orphan=None, noticed_by=NoticedBy.EXIT, held_s=None))

    assert any(text.startswith("predicted if left open: 14.64 to 15.27 s (retries2)") for text in said)
    assert "closed by its program" in said
    assert "exited at 3.358 s" in said
    there = words(_closed(orphan=OrphanObservation(copies=2)))
    assert "closed by its program, the orphan there to the end" in there


@pytest.mark.parametrize(
    "record",
    [
        *(pytest.param(case()[0], id=name) for name, case in CASES.items()),
        pytest.param(_given(gave_up_s=0.00035, noticed_s=0.0004, noticed_by=NoticedBy.CLOSE), id="reset-at-once"),
        pytest.param(_given(gave_up_s=0.9, noticed_s=0.95), id="in-the-middle"),
        pytest.param(_closed(_ORPHANED), id="closed"),
        pytest.param(_closed(), id="closed-not-predicted"),
        pytest.param(_closed(orphan=None), id="closed-without-an-orphan"),
        pytest.param(_healed_at(0.02), id="healed-at-once"),
        pytest.param(_healed_at(5.9), id="healed-late"),
        pytest.param(_long(), id="uncompressed"),
        pytest.param(return_only()[0].model_copy(update={"reason": "a long story " * 40}), id="long-reason"),
        pytest.param(interrupted()[0].model_copy(update={"horizon_s": 0.0}), id="nothing-watched"),
    ],
)
def test_no_label_overlaps_another_or_leaves_the_figure(record: Record) -> None:
    boxes = texts(record)
    assert len(boxes) > 10
    for (first, one), (second, other) in itertools.combinations(boxes, 2):
        assert not one.overlaps(other), f"{first!r} overlaps {second!r}"
    for said, box in boxes:
        assert box.x0 >= 0, said
        assert box.x1 <= 2 * WIDTH, said  # the PNG has two pixels for one of the layout
        assert box.y0 >= 0, said


def test_a_server_outside_is_said_to_be_so_and_not_to_live() -> None:
    said = words(CASES["outside"]()[0])

    assert "outside: kernel and program not observed" in said
    assert "not observed, 9 copies, the last at 7.047 s" in said
    assert not any("no prediction applied" in text or "no give-up" in text for text in said)
