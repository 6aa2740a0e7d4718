"""A server outside of any testbed, in a container or a process of the test's own, and what it saw itself.

It says everything as JSON lines on its standard output: what its program was told, what its kernel said of each socket,
and every packet that reached it. No part of the lab's runs knows of it.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import labels
from lab.testbed.docker.networks import unprotected

if TYPE_CHECKING:
    from docker.models.containers import Container

PORT = 5000
UP_TIMEOUT_S = 20.0
ICMP, ICMPV6 = 1, 58

SERVER = f"""
import errno, json, os, socket, struct, sys, threading, time
from lab.testbed.sockets import list_sockets
from lab.core.socket import TcpState

def say(**event):
    # One call: threads shall not break each other's lines.
    os.write(1, (json.dumps({{"at": time.monotonic(), **event}}) + "\\n").encode())

def packets():
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    while True:
        data, (_, protocol, kind, *_) = tap.recvfrom(2048)
        if kind == socket.PACKET_OUTGOING or protocol not in (0x800, 0x86DD):
            continue
        version, carried = (4, data[9]) if protocol == 0x800 else (6, data[6])
        head = (data[0] & 15) * 4 if version == 4 else 40
        ports = struct.unpack("!HH", data[head:head + 4]) if carried == 6 else ()
        say(packet=carried, ports=ports, kind=data[head + 13] if carried == 6 else data[head])

def kernel():
    seen, said = {{}}, {{}}
    while True:
        now = {{s.remote.port: s for s in list_sockets() if s.local.port == {PORT} and s.state is not TcpState.LISTEN}}
        for port, sample in now.items():
            grown = port not in seen or sample.total_retrans != seen[port].total_retrans
            if grown or sample.at - said.get(port, 0.0) > 0.1:
                said[port] = sample.at
                say(sample=port, state=sample.state.name, total_retrans=sample.total_retrans, srtt_s=sample.srtt_s,
                    rto_s=sample.rto_s, backoff=sample.backoff)
        for port in seen.keys() - now.keys():
            say(gone=port)
        seen = now
        time.sleep(0.01)

def talk(connection, port, every):
    try:
        while True:
            time.sleep(every)
            connection.sendall(b"news\\n")
    except OSError as error:
        # A socket's error is given once, to whichever thread asks first.
        if error.errno != errno.EPIPE:
            say(error=errno.errorcode.get(error.errno, str(error)), port=port)

def serve(connection, port):
    try:
        while data := connection.recv(4096):
            connection.sendall(data)
        say(eof=port)
    except OSError as error:
        say(error=errno.errorcode.get(error.errno, str(error)), port=port)

every = float(sys.argv[1])
for part in (packets, kernel):
    threading.Thread(target=part, daemon=True).start()
listener = socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
say(listening=True)
while True:
    connection, peer = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    say(accepted=peer[1])
    threading.Thread(target=serve, args=(connection, peer[1]), daemon=True).start()
    if every:
        threading.Thread(target=talk, args=(connection, peer[1], every), daemon=True).start()
"""


@dataclass(frozen=True, slots=True)
class Outside:
    """A server in a container that no testbed knows of."""

    container: "Container"
    ipv4: str
    ipv6: str
    gateway: str
    """This machine's own address on its network."""

    def events(self) -> Sequence[Mapping[str, Any]]:
        """All that it has said."""
        return [json.loads(line) for line in self.container.logs(stdout=True, stderr=False).splitlines()]


@contextlib.contextmanager
def network(engine: Engine, *, ipv6: bool) -> Iterator[str]:
    """A bridge network of the test's own, of IPv4 and where wanted IPv6; its name."""
    from docker.types import IPAMConfig, IPAMPool

    name = f"outside-{secrets.token_hex(4)}"
    pools = [IPAMPool(subnet=f"fd00:{secrets.token_hex(2)}:{secrets.token_hex(2)}:1::/64")] if ipv6 else []
    made = engine.client.networks.create(
        name,
        enable_ipv6=ipv6,
        ipam=IPAMConfig(pool_configs=pools),
        options=unprotected(engine),
        labels=labels("", "outside"),
    )
    try:
        yield name
    finally:
        made.remove()


@contextlib.contextmanager
def server(
    engine: Engine, image: str, on: str, *, every_s: float = 0.0, sysctls: Mapping[str, str] | None = None
) -> Iterator[Outside]:
    """A server there, which echoes, and sends a line of its own that often.

    Args:
        engine: Where.
        image: The lab's.
        on: Name of the network.
        every_s: 0 for never.
        sysctls: Of its namespace.
    """
    container = engine.client.containers.run(
        image,
        ["-u", "-c", SERVER, str(every_s)],
        entrypoint=["/opt/lab/bin/python"],
        network=on,
        sysctls=dict(sysctls or {}),
        cap_add=["NET_RAW"],
        user="0",
        labels=labels("", "outside"),
        detach=True,
    )
    try:
        container.reload()
        joined = container.attrs["NetworkSettings"]["Networks"][on]
        made = Outside(container, joined["IPAddress"], joined["GlobalIPv6Address"], joined["Gateway"])
        deadline = time.monotonic() + UP_TIMEOUT_S
        while not any("listening" in event for event in made.events()):
            assert time.monotonic() < deadline, container.logs()
            time.sleep(0.1)
        yield made
    finally:
        container.remove(force=True)


def reached(events: Sequence[Mapping[str, Any]], port: int, since: float, until: float) -> list[Mapping[str, Any]]:
    """What came to the server in that time from this port of the client's, and every ICMP error."""
    packets = (event for event in events if "packet" in event and since < event["at"] < until)
    return [event for event in packets if event["ports"][:1] == [port] or _is_error(event)]


def _is_error(event: Mapping[str, Any]) -> bool:
    """RFC 792 and RFC 4443: unreachable, source quench, redirect, time exceeded, parameter problem."""
    return event["kind"] in {ICMP: (3, 4, 5, 11, 12), ICMPV6: (1, 2, 3, 4)}.get(event["packet"], ())


def death_of(events: Sequence[Mapping[str, Any]], port: int) -> tuple[float | None, str | None]:
    """When its kernel stopped listing the socket, and the error that its program was given."""
    gone = next((event["at"] for event in events if event.get("gone") == port), None)
    return gone, next((str(event["error"]) for event in events if "error" in event and event["port"] == port), None)
