"""The interfaces and addresses of this process's network namespace: which one is meant, and what is its own."""

import contextlib
import fcntl
import ipaddress
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab.core.errors import UsageError

_SIOCGIFADDR = 0x8915
"""linux/sockios.h: the first IPv4 address of an interface, which is all that containers have."""

_IFREQ = struct.Struct("=16s24x")
_ADDRESS_AT = slice(20, 24)
_POLL_S = 0.01
_INET6 = Path("/proc/thread-self/net/if_inet6")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def find_interface(text: str) -> str:
    """The name of the interface that is meant.

    Args:
        text: ``eth0``, ``192.0.2.1``, or ``192.0.2.0/24``.

    Raises:
        UsageError: there is none, or several.
    """
    known = addresses()
    if text in known:
        return text
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise _unknown(text, known) from None
    found = [name for name, own in known.items() if any(_within(address, network) for address in own)]
    if len(found) != 1:
        raise _unknown(text, known)
    return found[0]


def is_own(address: str) -> bool:
    """Whether this process's network namespace has an address: the kernel lets a socket be bound to no other."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return True
    return False


def await_interface(text: str, deadline: float) -> str:
    """As ``find_interface``; one that is still being attached is waited for.

    Args:
        text: Which one.
        deadline: CLOCK_MONOTONIC.

    Raises:
        UsageError: there is none by then, or several.
    """
    while True:
        try:
            return find_interface(text)
        except UsageError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_S)


def addresses() -> Mapping[str, Sequence[IPAddress]]:
    """The addresses of every interface but loopback."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    found: dict[str, list[IPAddress]] = {name: list(_ipv4(name)) for name in names}
    with contextlib.suppress(OSError):
        for line in _INET6.read_text(encoding="ascii").splitlines():
            octets, *_, name = line.split()
            if name in found:
                found[name].append(ipaddress.IPv6Address(bytes.fromhex(octets)))
    return found


def _ipv4(name: str) -> Iterator[IPAddress]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker, contextlib.suppress(OSError):
        answer = fcntl.ioctl(asker.fileno(), _SIOCGIFADDR, _IFREQ.pack(name.encode()))
        yield ipaddress.IPv4Address(answer[_ADDRESS_AT])


def _within(address: IPAddress, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return address.version == network.version and address in network


def _unknown(text: str, known: Mapping[str, Sequence[IPAddress]]) -> UsageError:
    listed = "; ".join(f"{name} {' '.join(map(str, own))}".strip() for name, own in known.items()) or "none"
    return UsageError(
        f"Exactly one interface was expected to be {text!r}; those here are: {listed}.",
        fix="give a name, an address of it, or its network",
    )
