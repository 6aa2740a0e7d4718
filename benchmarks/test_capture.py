"""A bulk flow through the router, with and without the capture: what it costs, and what it misses.

Needs no privilege beyond user namespaces.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.figures import Figure
from lab.core.flow import FourTuple
from lab.testbed.ports import CaptureSummary
from tests.testbed.places import Places, ip, three_places
from tests.testbed.test_capture import _pour, _sink, _start, _stop

BULK_BYTES = 128 * 1024 * 1024
LARGE_RING = 64 * 1024 * 1024


@pytest.fixture
def places() -> Iterator[Places]:
    """Client, router and server."""
    with three_places() as places:
        yield places


@pytest.mark.parametrize("ring_bytes", [0, LARGE_RING], ids=["default-ring", "large-ring"])
@pytest.mark.parametrize("offloads", [False, True], ids=["wire-sized", "super-segments"])
def test_a_bulk_flow_is_caught_or_counted(
    places: Places, offloads: bool, ring_bytes: int, figures: Callable[[Figure], None]
) -> None:
    """Left and right saw the same number of packets, written and dropped together."""
    if not offloads:
        for place in (places.client, places.server):
            place.call(ip, "link", "set", "up0", "gso_max_segs", "1")
    alone = _transfer(places, places.connect())
    with tempfile.TemporaryDirectory() as folder:
        places.router.call(_start, Path(folder), "tcp", ring_bytes)
        watched = _transfer(places, places.connect())
        summary = places.router.call(_stop)
    # Before and after, since the speed of a machine that others use too drifts.
    alone = (alone + _transfer(places, places.connect())) / 2
    seen = _seen(summary)
    size = f"{ring_bytes >> 20} MB ring" if ring_bytes else "default ring"
    figures(
        Figure(
            f"bulk flow captured, {'super-segments' if offloads else 'wire-sized'}, {size}",
            f"{BULK_BYTES / watched / 1e6:.0f} MB/s, {seen['left'] / watched / 1000:.0f},000 packets/s;"
            f" {sum(summary.dropped.values())} of {sum(seen.values())} packets dropped",
            f"without a capture {BULK_BYTES / alone / 1e6:.0f} MB/s",
            f"{alone / watched:.2f} of the speed",
            "every packet written or counted as dropped",
            seen["left"] == seen["right"],
        )
    )
    assert seen["left"] == seen["right"]


def _transfer(places: Places, flow: FourTuple) -> float:
    """Seconds from the first octet sent to the last one read."""
    began = time.monotonic()
    sink = threading.Thread(target=places.server.call, args=(_sink, flow, BULK_BYTES))
    sink.start()
    places.client.call(_pour, flow, BULK_BYTES)
    sink.join()
    return time.monotonic() - began


def _seen(summary: CaptureSummary) -> dict[str, int]:
    return {side: summary.packets[side] + summary.dropped[side] for side in ("left", "right")}
