"""One frame of a capture file, and reading the octets that one is made from; pcap and pcapng share both."""

from typing import BinaryIO

MAX_FRAME = 1 << 20
"""Octets. The largest offloaded frame (BIG TCP) has 512 KiB; a longer record is damage, not a packet."""

_SKIP_CHUNK = 1 << 16

Frame = tuple[float, int, bytes, int]
"""Time captured (Unix seconds, 0 where the format holds none), link type (LINKTYPE_ value of the tcpdump registry),
what was captured, and octets on the wire. A plain tuple, since a million of them are made and taken apart at once."""


class DamagedCapture(Exception):
    """The file ends inside a record, or a record contradicts itself.

    Not one of the lab's errors: ``Capture`` turns it into one, or into a note.

    Args:
        what: A clause that completes "the capture ...".
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def read_exactly(file: BinaryIO, count: int) -> bytes:
    """Exactly ``count`` octets.

    Raises:
        DamagedCapture: the file ends before.
    """
    data = file.read(count)
    if len(data) < count:
        raise DamagedCapture("is cut off inside a record")
    return data


def skip(file: BinaryIO, count: int) -> None:
    """Pass over ``count`` octets in small steps, whatever the count.

    Raises:
        DamagedCapture: the file ends before.
    """
    while count > 0:
        count -= len(read_exactly(file, min(count, _SKIP_CHUNK)))
