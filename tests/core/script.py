"""Segments of one flow in a notation like packetdrill's, relative numbers throughout.

::

    0.000 > S 0(0)                  time, direction (> client to server), flags, seq(length)
    0.010 < S. 0(0) ack 1           . is ACK; S, F, P, R as usual
    0.300 > P. 1(100) ack 1         # timeout-copy       the class expected, first where nothing is said
    0.310 < . 1(0) ack 1 sack 101-201 win 0 ts 7 id 42
"""

import re
from dataclasses import dataclass

from lab.core.flow import Endpoint, FourTuple
from lab.core.retransmission import classify
from lab.core.segment import Segment

CLIENT = Endpoint("192.0.2.1", 40000)
SERVER = Endpoint("198.51.100.1", 5000)
FLOW = FourTuple(CLIENT, SERVER)

_LINE = re.compile(
    r"(?P<time>[\d.]+) (?P<way>[<>]) (?P<flags>[SFPR.]+) (?P<seq>-?\d+)\((?P<length>\d+)\)"
    r"(?P<rest>[^#]*)(# *(?P<class>\S+))?"
)
_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16}
_MASK = 0xFFFF_FFFF


@dataclass(frozen=True)
class Line:
    """One line of a script."""

    text: str
    segment: Segment
    expected: str


def lines(script: str, isn: tuple[int, int] = (1000, 5000)) -> list[Line]:
    """The lines of a script; ``isn`` are the initial sequence numbers of client and server."""
    return [_line(text.strip(), isn) for text in script.strip().splitlines() if text.strip()]


def segments(script: str, isn: tuple[int, int] = (1000, 5000)) -> list[Segment]:
    """The segments of a script."""
    return [line.segment for line in lines(script, isn)]


def check(script: str, isn: tuple[int, int] = (1000, 5000), flow: FourTuple | None = FLOW) -> None:
    """Assert that every segment is classified as the script says."""
    parsed = lines(script, isn)
    found = classify([line.segment for line in parsed], flow)
    seen = [
        f"{line.text.split('#')[0].strip()} # {c.segment_class.value}" for line, c in zip(parsed, found, strict=True)
    ]
    wanted = [f"{line.text.split('#')[0].strip()} # {line.expected}" for line in parsed]
    assert seen == wanted


def _line(text: str, isn: tuple[int, int]) -> Line:
    match = _LINE.fullmatch(text)
    assert match is not None, f"not a line of a script: {text}"
    forward = match["way"] == ">"
    mine, theirs = isn if forward else isn[::-1]
    words = match["rest"].split()
    options = dict(zip(words[::2], words[1::2], strict=True))
    sack = tuple(
        tuple((int(edge) + theirs) & _MASK for edge in block.split("-"))
        for block in options.get("sack", "").split(",")
        if block
    )
    segment = Segment(
        time_s=float(match["time"]),
        source=CLIENT if forward else SERVER,
        destination=SERVER if forward else CLIENT,
        seq=(int(match["seq"]) + mine) & _MASK,
        ack=(int(options["ack"]) + theirs) & _MASK if "ack" in options else 0,
        flags=sum(_FLAGS[letter] for letter in match["flags"]),
        window=int(options.get("win", 500)),
        length=int(match["length"]),
        sack=sack,  # type: ignore[arg-type]
        timestamps=(int(options["ts"]), 0) if "ts" in options else None,
        ip_id=int(options["id"]) if "id" in options else None,
    )
    return Line(text, segment, match["class"] or "first")


HANDSHAKE = """
0.000 > S 0(0)
0.010 < S. 0(0) ack 1
0.011 > . 1(0) ack 1
"""
"""Ten milliseconds to the server and back, one to the client."""
