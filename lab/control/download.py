"""A running capture as a download: what is whole by now, and the counters behind it.

pcapng files may be joined (section 3.2 of its draft): where a bound on the size has left two files, both are sent.
"""

import enum
import io
from collections.abc import Iterator

from starlette.responses import StreamingResponse

from lab.control.controller import Controller
from lab.control.refusals import NoCapture
from lab.pcap.writer import Statistics, interface_statistics
from lab.testbed.ports import CaptureSummary

MEDIA_TYPE = "application/vnd.tcpdump.pcap"
"""What is registered for libpcap's formats; pcapng has no registration of its own."""

_CHUNK = 1 << 16
_TRIES = 3
"""A file may be removed between the question what there is and the reading; then there are newer ones."""


class Side(enum.Enum):
    """Where it was captured."""

    left = "left"
    """The link towards the client."""

    right = "right"
    """The link towards the server."""


def response(controller: Controller, side: Side) -> StreamingResponse:
    """One side's packets up to now.

    Raises:
        NoCapture: the capture does not run.
    """
    for _ in range(_TRIES):
        summary = controller.recording.summary()
        files = summary.pieces[side.value]
        opened: list[tuple[io.BufferedReader, int]] = []
        try:
            for one in files:
                opened.append((one.path.open("rb"), one.octets))  # noqa: PERF401 - what is open is closed below
        except FileNotFoundError:
            _close(opened)
            continue
        tail = interface_statistics(_statistics(summary, side.value))
        length = sum(octets for _, octets in opened) + len(tail)
        headers = {
            "Content-Length": str(length),
            "Content-Disposition": f'attachment; filename="{side.value}.pcapng"',
            "Cache-Control": "no-store",
        }
        return StreamingResponse(_octets(opened, tail), media_type=MEDIA_TYPE, headers=headers)
    raise NoCapture(
        "Its files are replaced faster than they can be read.",
        fix="start the controller with larger --capture-mebibytes",
    )


def _octets(opened: list[tuple[io.BufferedReader, int]], tail: bytes) -> Iterator[bytes]:
    try:
        for file, octets in opened:
            left = octets
            while left and (data := file.read(min(_CHUNK, left))):
                left -= len(data)
                yield data
        yield tail
    finally:
        _close(opened)


def _close(opened: list[tuple[io.BufferedReader, int]]) -> None:
    for file, _ in opened:
        file.close()


def _statistics(summary: CaptureSummary, side: str) -> Statistics:
    started, now = summary.clocks[0], summary.clocks[-1]
    packets, dropped = summary.packets[side], summary.dropped[side]
    return Statistics(round(started.wall * 1e9), round(now.wall * 1e9), packets + dropped, dropped)
