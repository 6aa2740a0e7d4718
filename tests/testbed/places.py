"""Client, router and server for tests of the router's parts: processes with a network namespace each.

Smaller than the real testbed on purpose, so that the parts are proven without it: a place runs functions that it is
sent, and that is all.
"""

import contextlib
import ctypes
import encodings.idna  # noqa: F401 - asked for by every look-up; nobody may not be able to read the library then
import os
import signal
import socket
import subprocess
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from lab.core.flow import Endpoint, FourTuple

P = ParamSpec("P")
R = TypeVar("R")

CLIENT = {socket.AF_INET: "192.0.2.2", socket.AF_INET6: "2001:db8:1::2"}
SERVER = {socket.AF_INET: "198.51.100.2", socket.AF_INET6: "2001:db8:2::2"}
PORT = 7000

LEFT, RIGHT = "left0", "right0"
"""The router's interfaces."""

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_NOBODY = 65534
_libc = ctypes.CDLL(None, use_errno=True)


class Place:
    """A process elsewhere that runs what it is sent."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function returns, or raises, there."""
        self._pipe.send((function, args, kwargs))
        ok, value = self._pipe.recv()
        if not ok:
            error, trace = value
            error.add_note(trace)
            raise error
        result: R = value
        return result


@dataclass(frozen=True, slots=True)
class Places:
    """Client, router and server, connected, with addresses and routes of both families."""

    client: Place
    router: Place
    server: Place

    def connect(self, family: socket.AddressFamily = socket.AF_INET, port: int = PORT) -> FourTuple:
        """A new flow from client to server; both ends stay open in their places."""
        self.server.call(_listen, family, port)
        local = self.client.call(_connect, SERVER[family], port)
        flow = FourTuple(client=Endpoint(CLIENT[family], local), server=Endpoint(SERVER[family], port))
        self.server.call(_accept, flow)
        return flow


@contextlib.contextmanager
def three_places(*, as_nobody: bool = False) -> Iterator[Places]:
    """The places; gone with the block, whatever happens in it.

    Args:
        as_nobody: As root, give up every privilege first, so that a user namespace is all there is; an ordinary user
            has none to give up.
    """
    pipes = [Pipe() for _ in range(3)]
    router = os.fork()
    if router == 0:
        try:
            _run_router([far for _, far in pipes], [near for near, _ in pipes], as_nobody)
        except BaseException:  # noqa: BLE001 - a forked child must never return into the test runner
            traceback.print_exc()
        os._exit(1)
    near, _ = zip(*pipes, strict=True)
    for _, far in pipes:
        far.close()
    try:
        places = Places(*(Place(pipe) for pipe in near))
        pids = [place.call(os.getpid) for place in (places.client, places.server)]
        places.router.call(_set_up_router, *pids)
        places.client.call(_set_up_end, CLIENT, ("192.0.2.1", "2001:db8:1::1"))
        places.server.call(_set_up_end, SERVER, ("198.51.100.1", "2001:db8:2::1"))
        yield places
    finally:
        for pipe in near:
            pipe.close()
        os.waitpid(router, 0)


def ip(*arguments: str) -> None:
    """Run iproute2's ``ip``."""
    subprocess.run(["ip", *arguments], check=True)


def send(flow: FourTuple, data: bytes) -> None:
    """Send on this place's end of the flow."""
    _sockets[flow].sendall(data)


def receive(flow: FourTuple, number: int, timeout_s: float = 10.0) -> bytes:
    """Exactly so many octets from this place's end of the flow."""
    sock, data = _sockets[flow], b""
    sock.settimeout(timeout_s)
    while len(data) < number:
        data += sock.recv(number - len(data))
    return data


_sockets: dict[FourTuple, socket.socket] = {}
_connected: list[socket.socket] = []
_listeners: dict[tuple[socket.AddressFamily, int], socket.socket] = {}


def _listen(family: socket.AddressFamily, port: int) -> None:
    if (family, port) not in _listeners:
        _listeners[family, port] = socket.create_server((SERVER[family], port), family=family)


def _connect(address: str, port: int) -> int:
    sock = socket.create_connection((address, port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = sock.getsockname()
    family = sock.family
    _sockets[FourTuple(Endpoint(CLIENT[family], name[1]), Endpoint(address, port))] = sock
    return int(name[1])


def _accept(flow: FourTuple) -> None:
    family = socket.AF_INET6 if flow.ipv6 else socket.AF_INET
    sock, peer = _listeners[family, flow.server.port].accept()
    assert peer[1] == flow.client.port
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _sockets[flow] = sock


def _run_router(far: list[Connection], near: list[Connection], as_nobody: bool) -> None:
    for pipe in near:
        pipe.close()
    if as_nobody and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        # Else /proc/self would still be root's, and the identity maps below could not be written.
        _libc.prctl(_PR_SET_DUMPABLE, 1)
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWNET | (0 if user == 0 else _CLONE_NEWUSER))
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    client, router, server = far
    for pipe in (client, server):
        if os.fork() == 0:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            try:
                _unshare(_CLONE_NEWNET)
            except OSError:
                os._exit(1)
            _serve(pipe, [other for other in far if other is not pipe])
    _serve(router, [client, server])


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _serve(pipe: Connection, others: list[Connection]) -> None:
    for other in others:
        other.close()
    try:
        while True:
            function, args, kwargs = pipe.recv()
            try:
                reply: tuple[bool, Any] = True, function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - it is raised where the call came from
                reply = False, (error, traceback.format_exc())
            pipe.send(reply)
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked child must never return into the test runner
        traceback.print_exc()
        os._exit(1)


def _skip_duplicate_address_detection() -> None:
    """It holds back the link-local addresses, without which the first look-up of a neighbour takes two seconds."""
    for scope in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{scope}/accept_dad").write_text("0")


def _set_up_router(client: int, server: int) -> None:
    _skip_duplicate_address_detection()
    ip("link", "set", "lo", "up")
    for interface, peer, addresses in (
        (LEFT, client, ("192.0.2.1/24", "2001:db8:1::1/64")),
        (RIGHT, server, ("198.51.100.1/24", "2001:db8:2::1/64")),
    ):
        ip("link", "add", interface, "type", "veth", "peer", "name", "up0", "netns", str(peer))
        for address in addresses:
            ip("address", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))
        ip("link", "set", interface, "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")


def _set_up_end(addresses: dict[socket.AddressFamily, str], gateways: tuple[str, str]) -> None:
    _skip_duplicate_address_detection()
    ip("link", "set", "lo", "up")
    ip("link", "set", "up0", "up")
    ip("address", "add", f"{addresses[socket.AF_INET]}/24", "dev", "up0")
    ip("address", "add", f"{addresses[socket.AF_INET6]}/64", "dev", "up0", "nodad")
    for gateway in gateways:
        ip("route", "add", "default", "via", gateway)
