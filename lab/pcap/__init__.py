r"""Captures into segments: a streaming decoder of pcap and pcapng, gzipped or not.

::

    file -> container (classic, pcapng) -> link (frame to packet) -> ip (packet to Segment or IcmpMessage)
                                             \- fallback (scapy, for rare link types)

Nothing is allocated on the word of a length field alone, so hostile input costs bounded memory and time.
"""

from lab.pcap.capture import Capture, read_packets, read_segments

__all__ = ["Capture", "read_packets", "read_segments"]
