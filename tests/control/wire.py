"""Captures of segments, written as the lab writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.core.flow import FourTuple
from lab.core.segment import Flag
from lab.pcap.writer import PcapngWriter, Source
from tests.control.fakes import FLOW
from tests.pcap.build import ethernet, ipv4, tcp

_SOURCE = Source("left0", "", "", "x86_64", "Linux", "tests")


@dataclass(frozen=True, slots=True)
class Sent:
    """One segment of a flow."""

    at: float
    sender: str
    """client or server."""

    flags: Flag
    seq: int
    ack: int = 0
    length: int = 0
    flow: FourTuple = FLOW

    def frame(self) -> bytes:
        ends = self.flow if self.sender == "client" else self.flow[::-1]
        ports, addresses = (ends[0].port, ends[1].port), (ends[0].address, ends[1].address)
        segment = tcp(seq=self.seq, ack=self.ack, flags=int(self.flags), payload=bytes(self.length), ports=ports)
        return ethernet(ipv4(segment, ends=addresses))


THROUGH_S = 0.00005
"""How long the way through the router takes."""


def write(path: Path, side: str, sent: Sequence[Sent]) -> None:
    """A capture of one side; what came through the router is a little late there."""
    leaves = "client" if side == "right" else "server"
    writer = PcapngWriter(path, _SOURCE)
    for one in sorted(sent, key=lambda one: one.at):
        frame = one.frame()
        at = one.at + (THROUGH_S if one.sender == leaves else 0.0)
        writer.write([(round(at * 1e9), len(frame), False, frame)])
    writer.close()
