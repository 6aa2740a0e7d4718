"""From ``HOST:PORT`` to a far end outside of the testbed, resolved and looked at before anything starts."""

import ipaddress
import socket

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.core.uplink import Uplink
from lab.testbed.names import NODES

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORM = "--uplink is HOST:PORT, or [ADDRESS]:PORT for an IPv6 address"


def resolve(text: str, *, ipv6: bool) -> Uplink:
    """The far end that a user named.

    Args:
        text: HOST:PORT.
        ipv6: Which family to resolve the name in.

    Raises:
        UsageError: not of that form, of the other family, or an address that no other host has.
        EnvironmentNotReady: the name does not resolve.
    """
    host, port = _parts(text)
    address = _literal(host) or _looked_up(host, port, ipv6=ipv6)
    if (address.version == 6) != ipv6:
        fix = "leave --ipv6 out" if ipv6 else "add --ipv6"
        raise UsageError(
            f"The run is over IPv{6 if ipv6 else 4}, but {host} is an IPv{address.version} address.", fix=fix
        )
    _refuse(host, address)
    if host in NODES:
        raise UsageError(f"In the testbed {host} is the name of a node.", fix=f"--uplink {address}:{port}")
    return Uplink(host if _literal(host) is None else str(address), port, str(address))


def _parts(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not (colon and host and port.isdecimal()) or (":" in host and not bracketed):
        raise UsageError(f"{_FORM}; {text!r} is not.", fix="--uplink staging.example.com:443")
    if not 0 < int(port) < 1 << 16:
        raise UsageError(f"The port of --uplink must lie in 1 to 65535; it is {port}.")
    return host[1:-1] if bracketed else host, int(port)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _looked_up(host: str, port: int, *, ipv6: bool) -> Address:
    """The first address of the family: the client is given this one and no other."""
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise EnvironmentNotReady(
            f"{host} has no IPv{6 if ipv6 else 4} address here: {getattr(error, 'strerror', None) or error}.",
            fix="check the name, or give the address",
        ) from error
    return ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])


def _refuse(host: str, address: Address) -> None:
    said = host if host == str(address) else f"{host} ({address})"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None:
        raise UsageError(f"{said} is how an IPv6 socket writes an IPv4 address.", fix=f"--uplink {mapped}:PORT")
    if address.is_loopback:
        raise UsageError(
            f"{said} is a loopback address: every node of the testbed has its own, and this machine's is not theirs.",
            fix="run the server in the testbed (--server, --port), or let it listen on an address of this machine",
        )
    if address.is_unspecified or address.is_multicast:
        raise UsageError(f"{said} is no address of one host.")
    if address.is_link_local:
        raise UsageError(
            f"{said} is a link-local address; it is known on its own link only, not behind a router.",
            fix="give an address that is routed",
        )
