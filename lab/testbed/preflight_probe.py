"""Tries what the embedded testbed does, in namespaces of its own, and says what the kernel answered.

Run as a program by ``lab.testbed.preflight``, so that nothing of the caller changes. Each probe prints one JSON line as
soon as it is done: a probe that ends the process costs the answers after it only.
"""

import contextlib
import ctypes
import errno
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)
_sysctls = Path("/proc/sys/net/ipv4")


def user_namespace() -> str:
    """A user namespace in which the caller keeps its ids and has every capability."""
    uid, gid = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWUSER)
    # A group may be mapped without privileges only once setgroups(2) is given up (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return f"uid {uid} has every capability in its own"


def mount_namespace() -> str:
    """A file bound over another one, as /etc/hosts is in every node."""
    _unshare(CLONE_NEWNS)
    _mount("none", "/", MS_REC | MS_PRIVATE)
    with tempfile.NamedTemporaryFile() as file:
        _mount(file.name, "/etc/hosts", MS_BIND)
    return "a file can be bound over /etc/hosts"


def network_namespace() -> str:
    """The namespace that all later probes work in."""
    _unshare(CLONE_NEWNET)
    return "its own, empty"


def pid_namespace() -> str:
    """A PID namespace with a first process; its end is the end of all others in it."""
    child = os.fork()
    if child == 0:
        try:
            _unshare(CLONE_NEWPID)
            first = os.fork()
            if first == 0:
                os._exit(0)
            os.waitpid(first, 0)
        except OSError as error:
            os._exit(error.errno or errno.EIO)
        os._exit(0)
    failed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if failed:
        raise OSError(failed, os.strerror(failed))
    return "its own"


def sysctls() -> str:
    """A kernel setting of the namespace, written and read back."""
    knob = _sysctls / "tcp_retries2"
    knob.write_text("5")
    return f"writable, tcp_retries2={knob.read_text().strip()}"


def links() -> str:
    """A pair of virtual links that are up, with addresses of both families."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="lo")[0], state="up")
        route.link("add", ifname="lab0", kind="veth", peer="lab1")
        for name, address in (("lab0", "192.0.2.1"), ("lab1", "192.0.2.2")):
            index = route.link_lookup(ifname=name)[0]
            route.addr("add", index=index, address=address, prefixlen=24)
            route.link("set", index=index, state="up")
    return "a veth pair is up"


def ipv6() -> str:
    """An IPv6 address on a link of the namespace."""
    from pyroute2 import IPRoute

    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("0")
    with IPRoute() as route:
        index = route.link_lookup(ifname="lab0")[0]
        route.addr("add", index=index, address="2001:db8::1", prefixlen=64, family=socket.AF_INET6)
    return "an address can be set"


def packet_socket() -> str:
    """A socket that sees every packet of a link."""
    every_protocol = 0x0003  # ETH_P_ALL of linux/if_ether.h
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(every_protocol)) as raw:
        raw.bind(("lab0", 0))
    return "AF_PACKET opens"


def inet_diag() -> str:
    """The kernel's list of TCP sockets, a listener of this process among them."""
    from pyroute2 import DiagSocket

    with socket.create_server(("127.0.0.1", 0)) as server, DiagSocket() as diag:
        diag.bind()
        ports = {found["idiag_sport"] for found in diag.get_sock_stats(family=socket.AF_INET)}
        if server.getsockname()[1] not in ports:
            raise OSError(errno.ENOENT, "a listening socket is not in the list")
    return "sockets are listed with their TCP_INFO"


def iptables() -> str:
    """The lab's rules through the legacy tables, both families."""
    return _rules("iptables")


def nftables() -> str:
    """The lab's rules through nftables."""
    return _rules("nftables")


def conntrack() -> str:
    """Connection tracking, which counts the octets of a flow."""
    tracked = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    tracked.read_text()
    return "connections are tracked"


def congestion_control() -> str:
    """The congestion control that profiles prefer; what is asked for here is what a node would ask for."""
    knob = _sysctls / "tcp_congestion_control"
    inherited = knob.read_text().strip()
    for preferred in ("cubic", "reno"):
        with contextlib.suppress(OSError):
            knob.write_text(preferred)
            break
    return f"{knob.read_text().strip()} (inherited: {inherited})"


FENCES = (user_namespace, network_namespace)
"""Tried first. Root may have a network namespace without the former; without the latter nothing more is tried, since
it would happen on the host."""

GROUPS: dict[str, tuple[Callable[[], str], ...]] = {
    "links": (mount_namespace, pid_namespace, sysctls, links, ipv6, packet_socket, inet_diag, congestion_control),
    "rules": (iptables, nftables, conntrack),
}
"""Run side by side, each in namespaces of its own; within one, a probe may use what those before it made."""


def main(group: str) -> None:
    """Run the fences and the probes of a group, and print what came of each."""
    for probe in FENCES + GROUPS[group]:
        answer = _ask(probe)
        sys.stdout.write(json.dumps({"probe": probe.__name__, **answer}) + "\n")
        sys.stdout.flush()
        if probe is network_namespace and not answer["ok"]:
            return


def _ask(probe: Callable[[], str]) -> dict[str, str | bool | int | None]:
    try:
        return {"ok": True, "seen": probe(), "errno": None, "fix": None}
    except Exception as error:  # noqa: BLE001 - whatever a probe meets is its answer
        seen = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
        # Netlink's errors keep the kernel's number as their code.
        number = getattr(error, "errno", None) or getattr(error, "code", None)
        return {"ok": False, "seen": seen, "errno": number, "fix": getattr(error, "fix", None)}


def _rules(choice: str) -> str:
    from lab.testbed.firewall import open_firewall

    open_firewall(choice).close()
    return "rules can be set, IPv4 and IPv6"


def _unshare(kind: int) -> None:
    if _libc.unshare(kind):
        _raise("unshare")


def _mount(source: str, target: str, flags: int) -> None:
    if _libc.mount(source.encode(), target.encode(), None, flags, None):
        _raise("mount")


def _raise(call: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{call}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1])
