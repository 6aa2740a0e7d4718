"""TCP sockets of this process's network namespace, as their kernel describes them (sock_diag(7), ``inet_diag``).

A plain netlink socket and ``struct`` rather than pyroute2's ``DiagSocket``: that one cannot be used while an event loop
runs in the thread (agents run one), and its decoder takes 200 microseconds per socket where this one takes 10,
which decides how many testbeds fit on a machine.

Everything here is synchronous: the kernel queues its answer before ``send`` returns, so no read waits.
"""

import errno
import functools
import os
import socket
import struct
import sys
import time
from typing import NamedTuple, Self

from lab.core.errors import Unsupported
from lab.core.flow import Endpoint
from lab.core.socket import SocketSample, TcpState, Timer

NETLINK_SOCK_DIAG = 4
TCPDIAG_GETSOCK, SOCK_DIAG_BY_FAMILY = 18, 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO = 2
"""Attribute with ``struct tcp_info``; asked for with bit ``INET_DIAG_INFO - 1`` of ``idiag_ext``."""

NO_COOKIE = 0xFFFFFFFF_FFFFFFFF
"""INET_DIAG_NOCOOKIE twice: whichever socket has these ends."""

ALL_STATES = sum(1 << state for state in TcpState)
"""Not the pseudo-state of later kernels for sockets that are only bound: those are not connections."""

LONGEST_ANSWER = struct.pack("@ll", 5, 0)
"""``struct timeval``: a kernel that answers later than that is an error, not a wait."""

_NLMSGHDR = struct.Struct("=IHHII")
_REQUEST_V2 = struct.Struct("=BBBBI")
_REQUEST_V1 = struct.Struct("=BBBB")
_STATES_V1 = struct.Struct("=II")
_ENDS = struct.Struct("!HH16s16s")
_INTERFACE_COOKIE = struct.Struct("=IQ")
_MESSAGE_HEAD = struct.Struct("!4BHH16s16s")
_MESSAGE_TAIL = struct.Struct("=IQ5I")
_MESSAGE_SIZE = _MESSAGE_HEAD.size + _MESSAGE_TAIL.size
_ATTRIBUTE = struct.Struct("=HH")

# struct tcp_info only ever grows at its end, so an older kernel's is a prefix of this one.
_TCP_INFO = struct.Struct(
    "=4x B 3x I 12x I"  # tcpi_backoff, tcpi_rto (us), tcpi_unacked
    "16x I 4x I I"  # tcpi_last_data_sent, tcpi_last_data_recv, tcpi_last_ack_recv (ms)
    "8x I I 24x I"  # tcpi_rtt, tcpi_rttvar (us), tcpi_total_retrans
    "16x Q Q 8x I 80x I"  # tcpi_bytes_acked, tcpi_bytes_received, tcpi_notsent_bytes, tcpi_snd_wnd
)
_NO_TCP_INFO = bytes(_TCP_INFO.size)

_V4_MAPPED = bytes(10) + b"\xff\xff"


class Listed(NamedTuple):
    """A sample and the identity of its socket."""

    sample: SocketSample

    cookie: int
    """``idiag_cookie``: the same from request to time-wait socket, and never given to another socket."""


class SocketTable:
    """The namespace's TCP sockets; a context manager that owns one netlink socket.

    The netlink socket stays in the namespace in which the table was made, wherever the process goes afterwards.

    Raises:
        Unsupported: this kernel has no ``inet_diag`` for TCP.
    """

    def __init__(self) -> None:
        self._sequence = 0
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
        except OSError as error:
            raise _unsupported(error) from error
        try:
            self._netlink.bind((0, 0))
            self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, LONGEST_ANSWER)
            # Without tcp_diag a lookup fails as if the socket did not exist: never mistake one for the other.
            self._dump(states=1 << TcpState.LISTEN)
        except OSError as error:
            self._netlink.close()
            raise _unsupported(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the netlink socket; idempotent."""
        self._netlink.close()

    def samples(self) -> list[SocketSample]:
        """Every TCP socket of both families: listeners, request sockets (SYN_RECV) and time-wait sockets too.

        The kernel walks its tables while they change: a socket that comes or goes meanwhile may be missing. The walk
        takes milliseconds, since namespaces share the host's table unless they were made with
        ``tcp_child_ehash_entries``: to follow one socket, ask with ``query``.
        """
        return [listed.sample for listed in self._dump()]

    def query(self, local: Endpoint, remote: Endpoint) -> Listed | None:
        """The one socket with exactly these ends, without walking the tables; None where there is none.

        Its ``at`` is just before the question, so the socket existed at or after it.

        Source: ``inet_diag_find_one_icsk`` in net/ipv4/inet_diag.c.
        """
        found = self._lookup(local, remote, interface=0)
        if found is None:
            # The kernel takes a socket bound to a device (SO_BINDTODEVICE) for another one unless asked with it.
            for interface, _ in socket.if_nameindex():
                found = found or self._lookup(local, remote, interface)
        return found

    def is_bound_to_device(self, local: Endpoint, remote: Endpoint) -> bool:
        """Whether the one socket with these ends was bound to a device (SO_BINDTODEVICE)."""
        return self._lookup(local, remote, interface=0) is None and self.query(local, remote) is not None

    def _lookup(self, local: Endpoint, remote: Endpoint, interface: int) -> Listed | None:
        try:
            listed, _ = self._ask(SOCK_DIAG_BY_FAMILY, 0, _exact_question(local, remote, interface))
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise
        # With no connection of these ends, the kernel answers with the listener that would accept it.
        return next((one for one in listed if (one.sample.local, one.sample.remote) == (local, remote)), None)

    def _dump(self, states: int = ALL_STATES) -> list[Listed]:
        listed, done = self._ask(TCPDIAG_GETSOCK, NLM_F_DUMP, _dump_question(states))
        at = listed[0].sample.at if listed else time.monotonic()
        while not done:
            more, done = self._receive(at)
            listed += more
        return listed

    def _ask(self, kind: int, flags: int, body: bytes) -> tuple[list[Listed], bool]:
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        header = _NLMSGHDR.pack(_NLMSGHDR.size + len(body), kind, NLM_F_REQUEST | flags, self._sequence, 0)
        at = time.monotonic()
        self._netlink.send(header + body)
        return self._receive(at)

    def _receive(self, at: float) -> tuple[list[Listed], bool]:
        """The next datagram of the answer, whatever is left of an earlier one that a signal broke off."""
        while True:
            datagram = self._netlink.recv(1 << 16)
            if _NLMSGHDR.unpack_from(datagram)[3] == self._sequence:
                return _parse(datagram, at)


def list_sockets() -> list[SocketSample]:
    """Every TCP socket of this process's network namespace, as ``SocketTable.samples``."""
    with SocketTable() as table:
        return table.samples()


def query(local: Endpoint, remote: Endpoint) -> SocketSample | None:
    """The one socket with exactly these ends, or None; to ask often, keep a ``SocketTable``."""
    with SocketTable() as table:
        listed = table.query(local, remote)
        return None if listed is None else listed.sample


def _unsupported(error: OSError) -> Unsupported:
    return Unsupported(
        f"The kernel does not list TCP sockets (sock_diag: {error.strerror}).",
        fix="modprobe tcp_diag, or a kernel with CONFIG_INET_DIAG",
    )


@functools.lru_cache(maxsize=256)
def _exact_question(local: Endpoint, remote: Endpoint, interface: int) -> bytes:
    """``struct inet_diag_req_v2``."""
    family = socket.AF_INET6 if ":" in local.address else socket.AF_INET
    addresses = (socket.inet_pton(family, end.address) for end in (local, remote))
    head = _REQUEST_V2.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, ALL_STATES)
    return head + _ENDS.pack(local.port, remote.port, *addresses) + _INTERFACE_COOKIE.pack(interface, NO_COOKIE)


def _dump_question(states: int) -> bytes:
    """``struct inet_diag_req``: the older one, which asks for no family, so that one walk lists both."""
    head = _REQUEST_V1.pack(socket.AF_UNSPEC, 0, 0, 1 << (INET_DIAG_INFO - 1))
    return head + bytes(_ENDS.size) + _INTERFACE_COOKIE.pack(0, NO_COOKIE) + _STATES_V1.pack(states, 0)


def _parse(datagram: bytes, at: float) -> tuple[list[Listed], bool]:
    """The sockets of one datagram, and whether it ends the dump.

    Raises:
        OSError: the kernel refused the question.
    """
    listed: list[Listed] = []
    offset = 0
    while offset < len(datagram):
        length, kind, _, _, _ = _NLMSGHDR.unpack_from(datagram, offset)
        payload = datagram[offset + _NLMSGHDR.size : offset + length]
        if kind in (NLMSG_ERROR, NLMSG_DONE):
            # Both carry a negated errno; 0 is success.
            code = -int.from_bytes(payload[:4], sys.byteorder, signed=True)
            if code:
                raise OSError(code, os.strerror(code))
            return listed, True
        listed.append(_decode(payload, at))
        offset += (length + 3) & ~3
    return listed, False


@functools.lru_cache(maxsize=256)
def _address(family: int, octets: bytes) -> str:
    """An address in the lab's form: IPv4 that an IPv6 socket carries (``::ffff:192.0.2.1``) is plain IPv4."""
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, octets[:4])
    if octets[:12] == _V4_MAPPED:
        return socket.inet_ntop(socket.AF_INET, octets[12:])
    return socket.inet_ntop(socket.AF_INET6, octets)


def _tcp_info(attributes: bytes) -> bytes:
    """``struct tcp_info`` filled up with zeros; all zeros for mini sockets, which have none."""
    offset = 0
    while offset + _ATTRIBUTE.size <= len(attributes):
        length, kind = _ATTRIBUTE.unpack_from(attributes, offset)
        if kind == INET_DIAG_INFO:
            return attributes[offset + _ATTRIBUTE.size : offset + length].ljust(_TCP_INFO.size, b"\0")
        offset += max((length + 3) & ~3, _ATTRIBUTE.size)
    return _NO_TCP_INFO


def _decode(message: bytes, at: float) -> Listed:
    """A sample from ``struct inet_diag_msg`` and its attributes (``inet_sk_diag_fill`` and its siblings)."""
    family, state, timer, retransmits, sport, dport, source, destination = _MESSAGE_HEAD.unpack_from(message)
    _, cookie, expires_ms, recv_queue, send_queue, _, inode = _MESSAGE_TAIL.unpack_from(message, _MESSAGE_HEAD.size)
    info = _TCP_INFO.unpack_from(_tcp_info(message[_MESSAGE_SIZE:]))
    backoff, rto_us, unacked, sent_ms, received_ms, acked_ms, rtt_us, rttvar_us, *sums = info
    total_retrans, bytes_acked, bytes_received, not_sent, window = sums
    sample = SocketSample(
        at=at,
        local=Endpoint(_address(family, source), sport),
        remote=Endpoint(_address(family, destination), dport),
        state=TcpState(state),
        timer=Timer(timer),
        expires_s=expires_ms / 1e3 if timer else None,
        backoff=backoff,
        retransmits=retransmits,
        rto_s=rto_us / 1e6,
        srtt_s=rtt_us / 1e6,
        rttvar_s=rttvar_us / 1e6,
        # A listener's field holds its accept queue instead.
        unacked=0 if state == TcpState.LISTEN else unacked,
        total_retrans=total_retrans,
        not_sent_bytes=not_sent,
        bytes_acked=bytes_acked,
        bytes_received=bytes_received,
        recv_queue=recv_queue,
        send_queue=send_queue,
        last_data_sent_s=sent_ms / 1e3,
        last_data_received_s=received_ms / 1e3,
        last_ack_received_s=acked_ms / 1e3,
        peer_window=window,
        inode=inode,
    )
    return Listed(sample, cookie)
