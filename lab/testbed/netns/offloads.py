"""Segmentation offloads of one interface, switched and read back through the ethtool ioctl."""

import ctypes
import enum
import fcntl
import socket
import struct

from lab.core.errors import Unsupported

_SIOCETHTOOL = 0x8946
_IFREQ = struct.Struct("16sP16x")
_VALUE = struct.Struct("=II")


class Offload(enum.Enum):
    """Offloads that make a capture differ from the wire; get and set commands of ``linux/ethtool.h``."""

    TSO = (0x1E, 0x1F)
    GSO = (0x23, 0x24)
    GRO = (0x2B, 0x2C)


def switch_off(interface: str) -> None:
    """Switch TSO, GSO and GRO off on an interface of this process's network namespace.

    Raises:
        Unsupported: the kernel kept one of them on.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        for offload in Offload:
            _ethtool(channel, interface, offload.value[1], 0)
        kept = [offload.name for offload in Offload if _ethtool(channel, interface, offload.value[0], 0)]
    if kept:
        raise Unsupported(f"The kernel keeps {', '.join(kept)} on at {interface}; captures would not show the wire.")


def read(interface: str) -> dict[Offload, bool]:
    """Which offloads are on at an interface of this process's network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        return {offload: bool(_ethtool(channel, interface, offload.value[0], 0)) for offload in Offload}


def _ethtool(channel: socket.socket, interface: str, command: int, data: int) -> int:
    """``struct ethtool_value`` to the driver and back."""
    value = ctypes.create_string_buffer(_VALUE.pack(command, data), _VALUE.size)
    fcntl.ioctl(channel, _SIOCETHTOOL, _IFREQ.pack(interface.encode(), ctypes.addressof(value)))
    return int(_VALUE.unpack(value.raw)[1])
