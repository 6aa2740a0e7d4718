"""The kernel's packet ring (packet(7), PACKET_RX_RING, version TPACKET_V3).

The kernel writes packets into memory that this process has mapped, many to a block, and hands a block over when it is
full or its time is up. Where no block is free it drops packets, and counts them. The ring is allocated by the kernel
and so is not bound by ``net.core.rmem_max``, which caps the receive buffer of an ordinary user.
"""

import ctypes
import mmap
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from lab.pcap.writer import Packet

BLOCK_BYTES = 128 * 1024
"""Holds the largest packet there is with offloads on, 64 KB, whole."""

RETIRE_MS = 40
"""A block that holds packets is handed over after this long, full or not. With one packet per block, the worst case,
the ring still bridges this times the number of blocks in which its reader gets no CPU."""

# linux/if_packet.h and asm-generic/socket.h; the socket module has names for few of these.
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10
_TPACKET_V3 = 2
_SO_ATTACH_FILTER = 26
_BPF_RETURN_CONSTANT = 0x06
_OUTGOING = socket.PACKET_OUTGOING

_FRAME_BYTES = 2048
"""Version 3 packs packets as they come; the kernel only checks that this divides a block."""

_KERNEL, _USER = 0, 1
"""Who owns a block (``TP_STATUS_KERNEL``, ``TP_STATUS_USER``)."""

_STATUS_OFFSET = 8
"""Of ``block_status`` in ``struct tpacket_block_desc``."""

_BLOCK = struct.Struct("=II")
"""``num_pkts`` and ``offset_to_first_pkt``, which follow the status."""

_HEADER = struct.Struct("=5I4xHH")
"""``struct tpacket3_hdr``: offset of the next, seconds, nanoseconds, captured and original length, (status), offset of
the link-layer header, (of the network header)."""

_PACKET_TYPE_OFFSET = 48 + 10
"""Of ``sll_pkttype`` in the ``struct sockaddr_ll`` that follows the header."""


class Count(NamedTuple):
    """What the kernel counted on one socket."""

    received: int
    """Packets that passed the filter, dropped ones included."""

    dropped: int
    """Packets that found no room in the ring."""


class PacketRing:
    """A ring on a packet socket that is not bound to a protocol yet, so that nothing has reached it.

    Args:
        packet_socket: Its filter is attached already. Bind it to a protocol after this.
        size: Octets; rounded up to whole blocks, at least two.

    Raises:
        OSError: the kernel has no memory for it.
    """

    def __init__(self, packet_socket: socket.socket, size: int) -> None:
        self._socket = packet_socket
        self._blocks = max(2, -(-size // BLOCK_BYTES))
        self._next = 0
        self._count = Count(received=0, dropped=0)
        self._taken = 0
        frames = self._blocks * (BLOCK_BYTES // _FRAME_BYTES)
        request = struct.pack("=7I", BLOCK_BYTES, self._blocks, _FRAME_BYTES, frames, RETIRE_MS, 0, 0)
        packet_socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
        packet_socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = mmap.mmap(packet_socket.fileno(), self._blocks * BLOCK_BYTES)
        # A block is given back by one store, which this view's assignment is. struct.pack_into clears the octets before
        # it writes them: between the two, while this process waits for a CPU, the kernel can fill the block and hand it
        # over again, and the second store would take it back unread.
        self._words = memoryview(self._memory).cast("I")

    @property
    def taken(self) -> int:
        """Packets handed out so far."""
        return self._taken

    def take(self, limit: int) -> Iterator[list[Packet]]:
        """The packets of each block that is ready, oldest first, ``limit`` blocks at most.

        A block is the kernel's again when the next one is asked for; the end comes when the next one is not ready.
        """
        for _ in range(limit):
            start = self._next * BLOCK_BYTES
            status = (start + _STATUS_OFFSET) // 4
            if not self._words[status] & _USER:
                return
            packets = self._packets(start)
            self._taken += len(packets)
            self._next = (self._next + 1) % self._blocks
            try:
                yield packets
            finally:
                self._words[status] = _KERNEL

    def count(self) -> Count:
        """The kernel's counters since the ring was made; reading them there resets them."""
        received, dropped, _ = struct.unpack("=3I", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12))
        self._count = Count(self._count.received + received, self._count.dropped + dropped)
        return self._count

    def stop_intake(self) -> None:
        """Let no further packet in; what is in the ring can still be taken."""
        instruction = ctypes.create_string_buffer(struct.pack("=HBBI", _BPF_RETURN_CONSTANT, 0, 0, 0))
        program = struct.pack("@HP", 1, ctypes.addressof(instruction))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)

    def close(self) -> None:
        """Unmap the ring; the socket is its maker's to close."""
        self._words.release()
        self._memory.close()

    def _packets(self, start: int) -> list[Packet]:
        memory, unpack = self._memory, _HEADER.unpack_from
        packets: list[Packet] = []
        number, offset = _BLOCK.unpack_from(memory, start + _STATUS_OFFSET + 4)
        at = start + offset
        for _ in range(number):
            step, seconds, nanoseconds, caught, length, link, _ = unpack(memory, at)
            first = at + link
            outgoing = memory[at + _PACKET_TYPE_OFFSET] == _OUTGOING
            packets.append((seconds * 1_000_000_000 + nanoseconds, length, outgoing, memory[first : first + caught]))
            at += step
        return packets
