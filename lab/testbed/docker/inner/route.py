"""The container that owns a node's network in compose.yaml: it sends what goes to the other side through the router.

``python -m lab.testbed.docker.inner.route --to 198.51.100.0/24 --via 192.0.2.1`` switches the offloads off, so that
captures show the wire, sets the routes, says so and stays until it is told to end. Needs NET_ADMIN.
"""

import argparse
import errno
import ipaddress
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, LabError, UsageError
from lab.testbed.agent import ethtool

READY = Path("/run/lab-ready")
"""Made once the routes are set; the container's health check looks for it."""

_ENDS = (signal.SIGTERM, signal.SIGINT)


def interface_towards(gateway: str) -> str:
    """The interface on whose network a gateway is.

    Raises:
        UsageError: it is on none of them.
    """
    from pyroute2 import IPRoute

    with IPRoute() as kernel:
        for one in kernel.get_addr(family=_family(gateway)):
            network = ipaddress.ip_network(f"{one.get_attr('IFA_ADDRESS')}/{one['prefixlen']}", strict=False)
            if ipaddress.ip_address(gateway) in network:
                return str(kernel.get_links(one["index"])[0].get_attr("IFLA_IFNAME"))
    raise UsageError(f"The gateway {gateway} is on no network of this container.")


def set_routes(destinations: Sequence[str], gateway: str) -> None:
    """Send what goes to these networks through a gateway, in place of any other route to them.

    Raises:
        PermissionError: NET_ADMIN is missing.
        UsageError: the kernel refuses a route.
    """
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as kernel:
        for destination in destinations:
            try:
                kernel.route("replace", dst=destination, gateway=gateway, family=_family(gateway))
            except NetlinkError as error:
                if error.code == errno.EPERM:
                    raise PermissionError(error.code, "routes") from error
                raise UsageError(f"The kernel refuses {destination} via {gateway}: {error}.") from error


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.testbed.docker.inner.route", description=__doc__)
    made.add_argument("--to", action="append", required=True, metavar="NETWORK", help="what lies behind the gateway")
    made.add_argument("--via", required=True, metavar="ADDRESS", help="the gateway: the router")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Set the routes and stay; the exit status."""
    # As the first process of a container no signal ends it that it does not wait for.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    options = parser().parse_args(argv)
    try:
        interface = interface_towards(options.via)
        ethtool.switch_offloads_off(interface)
        set_routes(options.to, options.via)
    except PermissionError:
        sys.stderr.write("Routes and offloads need a capability that this container lacks. Fix: cap_add: [NET_ADMIN]\n")
        return EnvironmentNotReady.exit_code
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{', '.join(options.to)} via {options.via} on {interface}; offloads off\n")
    sys.stdout.flush()
    READY.touch()
    signal.sigwait(_ENDS)
    return 0


def _family(address: str) -> int:
    import socket

    return socket.AF_INET if ipaddress.ip_address(address).version == 4 else socket.AF_INET6


if __name__ == "__main__":
    sys.exit(main())
