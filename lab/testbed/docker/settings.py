"""What a holder is given at its creation: kernel settings, and the caller's folder."""

from collections.abc import Mapping
from pathlib import Path

from lab.testbed import translation
from lab.testbed.names import ROUTER

_EVERY_NODE = {
    "net.ipv4.ip_unprivileged_port_start": "0",
    # The interfaces come with the engine's own settings; the kernel takes the stricter of both.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.all.accept_redirects": "0",
    "net.ipv4.conf.default.accept_redirects": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.autoconf": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    "net.ipv6.conf.default.accept_redirects": "0",
}

_FORWARDING = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
    "net.ipv6.conf.all.forwarding": "1",
}

_STAYING = {
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.forwarding": "0",
}

_LEAST_DEPTH = 3
"""Parts of a path; a folder right under the root may be one that the image needs itself."""


def at_creation(node: str, wanted: Mapping[str, str], *, leads_outside: bool = False) -> dict[str, str]:
    """The sysctls of a node's container: what every testbed needs, and a way out; then what is wanted."""
    lasting = translation.sysctls() if leads_outside else {}
    return {**_EVERY_NODE, **(_FORWARDING if node == ROUTER else _STAYING), **lasting, **wanted}


def workplace() -> Path | None:
    """The caller's folder, which programs in the lab's own image may read; None for one that could hide theirs."""
    here = Path.cwd().resolve()
    return here if len(here.parts) >= _LEAST_DEPTH and here.parts[1] not in ("usr", "opt", "proc", "sys") else None
