"""Replays recorded rtnetlink(7) requests in the network namespace that this process is in."""

import os
import socket
import struct
import sys

_NLMSGHDR = struct.Struct("=IHHII")
_NLMSG_ERROR = 2
_ACK_BYTES = 1 << 16


def replay(batch: bytes) -> None:
    """Send recorded requests, each of which asks for an acknowledgment, and see every one acknowledged.

    Args:
        batch: Whole netlink messages, one after the other; the kernel carries them out in order.

    Raises:
        OSError: the kernel refused one.
    """
    waiting = _count(batch)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as channel:
        channel.send(batch)
        while waiting:
            answers = channel.recv(_ACK_BYTES)
            offset = 0
            while offset < len(answers):
                length, kind, _, number, _ = _NLMSGHDR.unpack_from(answers, offset)
                if kind == _NLMSG_ERROR:
                    _check(answers[offset + _NLMSGHDR.size :], number)
                    waiting -= 1
                offset += _aligned(length)


def _check(payload: bytes, number: int) -> None:
    """``struct nlmsgerr``: a negated errno, 0 for success."""
    code = -int.from_bytes(payload[:4], sys.byteorder, signed=True)
    if code:
        raise OSError(code, f"rtnetlink request {number}: {os.strerror(code)}")


def _count(batch: bytes) -> int:
    offset = count = 0
    while offset < len(batch):
        offset += _aligned(_NLMSGHDR.unpack_from(batch, offset)[0])
        count += 1
    return count


def _aligned(length: int) -> int:
    return (length + 3) & ~3
