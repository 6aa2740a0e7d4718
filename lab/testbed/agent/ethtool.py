"""What the ethtool and interface ioctls say and set of an interface in this process's network namespace.

Sources: ``linux/ethtool.h``, netdevice(7).
"""

import ctypes
import enum
import fcntl
import socket
import struct
import time
from collections.abc import Collection

from lab.core.errors import EnvironmentNotReady, Unsupported

_SIOCETHTOOL = 0x8946
_SIOCGIFFLAGS = 0x8913
_SIOCGIFHWADDR = 0x8927
_IFF_RUNNING = 0x40
_GLINK = 0x0A

_IFREQ = struct.Struct("16sP16x")
_IFREQ_FLAGS = struct.Struct("16sH22x")
_IFREQ_HARDWARE = struct.Struct("16sH6s16x")
_VALUE = struct.Struct("=II")

_POLL_S = 0.001


class Offload(enum.Enum):
    """Offloads that make a capture differ from the wire; the commands that get and set them."""

    TSO = (0x1E, 0x1F)
    GSO = (0x23, 0x24)
    GRO = (0x2B, 0x2C)


def switch_offloads_off(interface: str, offloads: Collection[Offload] = tuple(Offload)) -> None:
    """Switch TSO, GSO and GRO off, or those that are named, and read them back.

    Raises:
        Unsupported: the kernel kept one of them on.
    """
    with _channel() as channel:
        for offload in offloads:
            _ethtool(channel, interface, offload.value[1], 0)
        kept = [offload.name for offload in offloads if _ethtool(channel, interface, offload.value[0], 0)]
    if kept:
        raise Unsupported(f"The kernel keeps {', '.join(kept)} on at {interface}; captures would not show the wire.")


def read_offloads(interface: str) -> dict[Offload, bool]:
    """Which offloads are on."""
    with _channel() as channel:
        return {offload: bool(_ethtool(channel, interface, offload.value[0], 0)) for offload in Offload}


def await_running(interface: str, timeout_s: float) -> None:
    """Return once the interface sends: a carrier that came up counts only when the kernel's link watch has seen it.

    Until then its queue drops every packet, and the first SYN would be resent after a second.

    Raises:
        EnvironmentNotReady: it did not happen in time.
    """
    deadline = time.monotonic() + timeout_s
    with _channel() as channel:
        while True:
            # Newer kernels run the link watch for this question (ethtool_op_get_link); older ones in their own time.
            _ethtool(channel, interface, _GLINK, 0)
            answer = fcntl.ioctl(channel, _SIOCGIFFLAGS, _IFREQ_FLAGS.pack(interface.encode(), 0))
            if _IFREQ_FLAGS.unpack(answer)[1] & _IFF_RUNNING:
                return
            if time.monotonic() > deadline:
                raise EnvironmentNotReady(f"The link {interface} did not come up within {timeout_s:g} s.")
            time.sleep(_POLL_S)


def hardware_address(interface: str) -> bytes:
    """The link-layer address of an Ethernet interface, six octets."""
    with _channel() as channel:
        answer = fcntl.ioctl(channel, _SIOCGIFHWADDR, _IFREQ_HARDWARE.pack(interface.encode(), 0, b""))
        return bytes(_IFREQ_HARDWARE.unpack(answer)[2])


def _channel() -> socket.socket:
    """Any socket will do to reach the interfaces of the namespace."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)


def _ethtool(channel: socket.socket, interface: str, command: int, data: int) -> int:
    """``struct ethtool_value`` to the driver and back."""
    value = ctypes.create_string_buffer(_VALUE.pack(command, data), _VALUE.size)
    fcntl.ioctl(channel, _SIOCETHTOOL, _IFREQ.pack(interface.encode(), ctypes.addressof(value)))
    return int(_VALUE.unpack(value.raw)[1])
