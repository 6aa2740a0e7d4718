"""The rules, with real packets: every test runs with each implementation unless it says otherwise."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from pyroute2.netlink.nfnetlink.nfctsocket import NFCTSocket

import lab.testbed.firewall_iptables
import lab.testbed.firewall_nftables  # noqa: F401 - loaded before the places are forked, as a warm server would have it
from lab.core.errors import UsageError
from lab.core.fault import Cut, Fault, Matched, Placement, Scope
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.testbed.firewall import Firewall, open_firewall
from lab.testbed.ports import CutReceipt
from tests.testbed.places import Place, Places, receive, send, three_places

FAMILIES = [pytest.param(socket.AF_INET, id="ipv4"), pytest.param(socket.AF_INET6, id="ipv6")]
QUIET_S = 0.3
"""Longer than the first copy of a lost segment takes, a tail-loss probe 0.2 s after it."""


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def firewall_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def connected() -> Iterator[Places]:
    with three_places() as places:
        yield places


@pytest.fixture
def places(connected: Places, firewall_name: str) -> Iterator[Places]:
    """The places with an open firewall in each."""
    everywhere = (connected.client, connected.router, connected.server)
    for place in everywhere:
        place.call(_open, firewall_name)
    yield connected
    for place in everywhere:
        place.call(_close)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cut_drops_both_directions_and_a_heal_lets_both_through(places: Places, family: socket.AddressFamily) -> None:
    flow = places.connect(family)
    assert _passes(places, flow, Direction.FORWARD)
    assert _passes(places, flow, Direction.RETURN)

    places.router.call(_cut, Fault(flow))
    places.client.call(send, flow, b"lost")
    places.server.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert not places.client.call(_arrives, flow, 4)

    places.router.call(_heal, Fault(flow))
    assert places.server.call(receive, flow, 4) == b"lost"
    assert places.client.call(receive, flow, 4) == b"lost"


@pytest.mark.parametrize("family", FAMILIES)
def test_each_direction_is_counted_and_the_counters_outlive_the_heal(
    places: Places, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    fault = Fault(flow)
    places.router.call(_prepare, fault)
    assert places.router.call(_matched, fault) == Matched(forward=0, return_=0)
    places.router.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    before = _wait_for_drops(places.router, fault, 2)  # the segment and its tail-loss probe
    assert before.return_ == 0

    places.router.call(_heal, fault)
    assert places.server.call(receive, flow, 4) == b"lost"
    assert _passes(places, flow, Direction.RETURN)
    after = places.router.call(_matched, fault)
    assert after.forward >= before.forward
    assert after == places.router.call(_matched, fault), "nothing is counted after the heal"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_forgotten_fault_leaves_no_rule_and_can_be_cut_anew(places: Places, family: socket.AddressFamily) -> None:
    flow = places.connect(family)
    fault, other = Fault(flow), Fault(places.connect(family))
    places.router.call(_cut, other)
    places.router.call(_cut, fault)
    with pytest.raises(UsageError, match="not in force was expected"):
        places.router.call(_forget, fault)
    places.client.call(send, flow, b"lost")
    _wait_for_drops(places.router, fault, 1)
    places.router.call(_heal, fault)
    assert places.server.call(receive, flow, 4) == b"lost"
    before = places.router.call(_rules)
    places.router.call(_forget, fault)
    places.router.call(_forget, fault)

    assert places.router.call(_rules) == before - 3, "a chain's head and its two rules"
    with pytest.raises(UsageError, match="that was prepared was expected"):
        places.router.call(_matched, fault)
    places.router.call(_cut, fault)
    assert places.router.call(_matched, fault) == Matched(forward=0, return_=0)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    places.router.call(_heal, fault)
    places.router.call(_heal, other)


def test_nothing_moves_before_the_cut_though_the_rules_are_built(places: Places) -> None:
    flow = places.connect()
    places.router.call(_prepare, Fault(flow))
    assert _passes(places, flow, Direction.FORWARD)
    assert places.router.call(_matched, Fault(flow)) == Matched(forward=0, return_=0)


@pytest.mark.parametrize(("direction", "reached"), [(Cut.FORWARD, Direction.RETURN), (Cut.RETURN, Direction.FORWARD)])
def test_one_direction_can_be_dropped_alone(places: Places, direction: Cut, reached: Direction) -> None:
    flow = places.connect()
    fault = Fault(flow, direction=direction)
    places.router.call(_cut, fault)
    sender, receiver = _ends(places, reached)
    sender.call(send, flow, b"data")
    assert receiver.call(receive, flow, 4) == b"data", "the data arrives, its acknowledgment does not"
    matched = _wait_for_drops(places.router, fault, 1)
    assert (matched.return_ if direction is Cut.FORWARD else matched.forward) == 0
    places.router.call(_heal, fault)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_flow_scope_spares_other_connections_of_the_same_pair(places: Places, family: socket.AddressFamily) -> None:
    dark, bystander = places.connect(family), places.connect(family)
    places.router.call(_cut, Fault(dark))
    assert _passes(places, bystander, Direction.FORWARD)
    assert _passes(places, bystander, Direction.RETURN)
    assert _passes(places, places.connect(family), Direction.FORWARD), "a new connection passes too"
    places.router.call(_heal, Fault(dark))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_flow_scope_is_tcp_only(places: Places, family: socket.AddressFamily) -> None:
    flow = places.connect(family)
    places.router.call(_cut, Fault(flow))
    places.server.call(_open_datagram, flow)
    places.client.call(_send_datagram, flow, b"datagram")
    assert places.server.call(_receive_datagram) == b"datagram", "UDP on the same four numbers is another flow"
    places.router.call(_heal, Fault(flow))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_host_scope_drops_everything_between_the_two_addresses(
    places: Places, family: socket.AddressFamily
) -> None:
    flow, other = places.connect(family), places.connect(family)
    fault = Fault(flow, scope=Scope.HOST)
    places.router.call(_cut, fault)
    places.client.call(send, other, b"lost")
    assert not places.server.call(_arrives, other, 4)
    with pytest.raises(TimeoutError):
        places.client.call(_try_to_connect, flow.server)
    _wait_for_drops(places.router, fault, 3)
    places.router.call(_heal, fault)
    assert places.server.call(receive, other, 4) == b"lost"


def test_faults_on_two_flows_coexist_and_the_heal_of_one_leaves_the_other(places: Places) -> None:
    first, second = places.connect(), places.connect()
    places.router.call(_cut, Fault(first))
    places.router.call(_cut, Fault(second))
    places.router.call(_heal, Fault(first))
    assert _passes(places, first, Direction.FORWARD)
    places.client.call(send, second, b"lost")
    assert not places.server.call(_arrives, second, 4)
    assert places.router.call(_matched, Fault(second)).forward >= 1
    assert places.router.call(_matched, Fault(first)) == Matched(forward=0, return_=0)
    places.router.call(_heal, Fault(second))
    assert places.server.call(receive, second, 4) == b"lost"


def test_cut_and_heal_are_idempotent(places: Places) -> None:
    fault = Fault(places.connect())
    cut = places.router.call(_cut, fault)
    assert cut.began_at <= cut.done_at
    assert places.router.call(_cut, fault) == cut
    heal = places.router.call(_heal, fault)
    assert heal.began_at > cut.done_at
    assert places.router.call(_heal, fault) == heal
    assert _passes(places, fault.flow, Direction.FORWARD), "one heal undoes two cuts"


def test_a_second_cut_of_a_fault_adds_to_its_counters(places: Places) -> None:
    flow = places.connect()
    fault = Fault(flow)
    counts = []
    for _ in range(2):
        places.router.call(_cut, fault)
        places.client.call(send, flow, b"lost")
        assert not places.server.call(_arrives, flow, 4)
        places.router.call(_heal, fault)
        assert places.server.call(receive, flow, 4) == b"lost"
        counts.append(places.router.call(_matched, fault).forward)
    assert 0 < counts[0] < counts[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_own_output_drops_what_the_sender_sends_and_tells_its_stack(
    places: Places, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    fault = Fault(flow, direction=Cut.FORWARD, placement=Placement.OWN_OUTPUT)
    places.client.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert places.client.call(_matched, fault).forward >= 1
    places.client.call(_heal, fault)
    assert places.server.call(receive, flow, 4) == b"lost"


@pytest.mark.parametrize("family", FAMILIES)
def test_conntrack_counts_a_flow_from_its_handshake(places: Places, family: socket.AddressFamily) -> None:
    flow = places.connect(family)
    places.client.call(send, flow, b"x" * 100)
    assert places.server.call(receive, flow, 100)
    source, octets = places.router.call(_conntrack, flow)
    assert source == flow.client.address, "the client's way is the original one"
    syn, ack, data = 60, 52, 152
    assert octets == syn + ack + data + (20 * 3 if flow.ipv6 else 0), "counted from the first packet on"


@pytest.mark.parametrize("family", FAMILIES)
def test_no_privilege_is_needed_beyond_a_user_namespace(firewall_name: str, family: socket.AddressFamily) -> None:
    with three_places(as_nobody=True) as places:
        assert places.router.call(_open, firewall_name) == firewall_name
        flow = places.connect(family)
        places.router.call(_cut, Fault(flow))
        places.client.call(send, flow, b"lost")
        assert not places.server.call(_arrives, flow, 4)
        assert places.router.call(_heal, Fault(flow))
        assert places.server.call(receive, flow, 4) == b"lost"
        assert places.router.call(_matched, Fault(flow)).forward >= 1


def test_accept_rules_of_others_in_the_same_hook_do_not_matter(places: Places, firewall_name: str) -> None:
    flow = places.connect()
    places.router.call(_prepare, Fault(flow))
    places.router.call(_accept_everything, firewall_name)
    places.router.call(_cut, Fault(flow))
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    places.router.call(_heal, Fault(flow))
    assert places.server.call(receive, flow, 4) == b"lost"
    assert places.router.call(_stop_accepting, firewall_name), "the other's rule has survived cut and heal"


def test_a_successor_finds_a_clean_namespace_after_an_owner_that_was_killed(places: Places, firewall_name: str) -> None:
    flow = places.connect()
    places.router.call(_cut_in_a_process_that_dies, firewall_name, Fault(flow))
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    places.router.call(_open, firewall_name)
    assert places.server.call(receive, flow, 4) == b"lost"


def test_close_takes_every_rule_back_and_keeps_the_last_reading(places: Places) -> None:
    flow = places.connect()
    places.router.call(_cut, Fault(flow))
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    places.router.call(_close)
    assert places.server.call(receive, flow, 4) == b"lost"
    assert places.router.call(_matched, Fault(flow)).forward >= 1
    with pytest.raises(UsageError, match="has been closed"):
        places.router.call(_cut, Fault(flow))


def test_a_fork_into_another_namespace_starts_afresh(places: Places, firewall_name: str) -> None:
    flow = places.connect()
    fault = Fault(flow)
    places.router.call(_cut, fault)
    assert places.router.call(_cut_in_a_new_namespace, firewall_name, fault) == 0
    places.router.call(_heal, fault)
    assert _passes(places, flow, Direction.FORWARD), "the child's rules are not here"


def test_a_heal_of_what_was_never_cut_is_a_mistake() -> None:
    firewall = Firewall(_NoTable())
    firewall.prepare(_FAULT)
    with pytest.raises(UsageError, match="never was"):
        firewall.heal(_FAULT)
    with pytest.raises(UsageError, match="never was"):
        Firewall(_NoTable()).matched(_FAULT)


@pytest.mark.parametrize(
    ("client", "server", "message"),
    [
        ("192.0.2.2", "2001:db8::2", "one family"),
        ("::ffff:192.0.2.2", "::ffff:198.51.100.2", r"write 192\.0\.2\.2"),
        ("client", "198.51.100.2", "'client' is none"),
        ("fe80::1%eth0", "fe80::2", "without zone"),
    ],
)
def test_a_fault_that_no_packet_can_match_is_refused(client: str, server: str, message: str) -> None:
    firewall = Firewall(_NoTable())
    with pytest.raises(UsageError, match=message):
        firewall.prepare(Fault(FourTuple(Endpoint(client, 4000), Endpoint(server, 80))))


def test_a_port_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="1 to 65535"):
        Firewall(_NoTable()).cut(Fault(FourTuple(Endpoint("192.0.2.2", 0), Endpoint("198.51.100.2", 80))))


def test_an_unknown_firewall_is_refused() -> None:
    with pytest.raises(UsageError, match="auto, iptables, nftables"):
        open_firewall("ebtables")


def test_auto_prefers_the_legacy_tables() -> None:
    with three_places() as places:
        assert places.router.call(_open, "auto") == "iptables"


def test_auto_takes_nftables_where_the_legacy_tables_are_missing() -> None:
    with three_places() as places:
        places.router.call(_hide_legacy_tables)
        assert places.router.call(_open, "auto") == "nftables"


_FAULT = Fault(FourTuple(Endpoint("192.0.2.2", 4000), Endpoint("198.51.100.2", 80)))


class _NoTable:
    """Rules that exist on paper."""

    name = "none"

    def build(self, number: int, fault: Fault) -> None: ...

    def enforce(self, number: int, fault: Fault) -> CutReceipt:
        raise AssertionError(f"nothing may be cut here: {number}, {fault}")

    def release(self, number: int, fault: Fault) -> CutReceipt:
        raise AssertionError(f"nothing may be healed here: {number}, {fault}")

    def packets(self, number: int, fault: Fault) -> list[int]:
        return [number * 0 for _ in fault.direction.directions]

    def remove(self, number: int, fault: Fault) -> None: ...

    def close(self) -> None: ...


# What runs in the places.

_firewalls: list[Firewall] = []
_datagrams: list[socket.socket] = []


def _open(name: str) -> str:
    _firewalls[:] = [open_firewall(name)]
    return _firewalls[0].name


def _close() -> None:
    _firewalls[0].close()


def _forget(fault: Fault) -> None:
    _firewalls[0].forget(fault)


def _rules() -> int:
    """Heads of chains of faults, and rules that drop, of both kinds of tables."""
    found = 0
    # By name: the list of the tables' names is root's alone.
    legacy = [[f"{tool}-legacy-save", "-t", "mangle"] for tool in ("iptables", "ip6tables")]
    for command in (*legacy, ["nft", "list", "ruleset"]):
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        heads = [line for line in lines if line.startswith((":lab-fault-", "\tchain fault-"))]
        found += len(heads) + sum("-j DROP" in line or " drop" in line for line in lines)
    return found


def _prepare(fault: Fault) -> None:
    _firewalls[0].prepare(fault)


def _cut(fault: Fault) -> CutReceipt:
    return _firewalls[0].cut(fault)


def _heal(fault: Fault) -> CutReceipt:
    return _firewalls[0].heal(fault)


def _matched(fault: Fault) -> Matched:
    return _firewalls[0].matched(fault)


def _ends(places: Places, direction: Direction) -> tuple[Place, Place]:
    if direction is Direction.FORWARD:
        return places.client, places.server
    return places.server, places.client


def _passes(places: Places, flow: FourTuple, direction: Direction) -> bool:
    sender, receiver = _ends(places, direction)
    sender.call(send, flow, b"ping")
    return receiver.call(receive, flow, 4) == b"ping"


def _wait_for_drops(place: Place, fault: Fault, number: int, timeout_s: float = 10.0) -> Matched:
    """The counters once so many packets were dropped in one direction."""
    deadline = time.monotonic() + timeout_s
    while max((matched := place.call(_matched, fault)).forward, matched.return_) < number:
        assert time.monotonic() < deadline, f"{number} drops were expected in {timeout_s} s; {matched} were seen"
        time.sleep(0.02)
    return matched


def _arrives(flow: FourTuple, number: int) -> bool:
    try:
        receive(flow, number, timeout_s=QUIET_S)
    except TimeoutError:
        return False
    return True


def _try_to_connect(server: Endpoint) -> None:
    socket.create_connection(server, timeout=QUIET_S).close()


def _family(flow: FourTuple) -> socket.AddressFamily:
    return socket.AF_INET6 if flow.ipv6 else socket.AF_INET


def _open_datagram(flow: FourTuple) -> None:
    sock = socket.socket(_family(flow), socket.SOCK_DGRAM)
    sock.bind(tuple(flow.server))
    sock.settimeout(10)
    _datagrams.append(sock)


def _send_datagram(flow: FourTuple, data: bytes) -> None:
    with socket.socket(_family(flow), socket.SOCK_DGRAM) as sock:
        sock.bind(tuple(flow.client))
        sock.sendto(data, tuple(flow.server))


def _receive_datagram() -> bytes:
    with _datagrams.pop() as sock:
        return sock.recv(100)


def _conntrack(flow: FourTuple) -> tuple[str, int]:
    """Where the connection came from, as conntrack has it, and the octets that it counted that way."""
    family = "V6" if flow.ipv6 else "V4"
    with NFCTSocket(nfgen_family=_family(flow)) as conntrack:
        for entry in conntrack.dump():
            way = entry.get_attr("CTA_TUPLE_ORIG")
            ports = way.get_attr("CTA_TUPLE_PROTO")
            ends = {ports.get_attr("CTA_PROTO_SRC_PORT"), ports.get_attr("CTA_PROTO_DST_PORT")}
            if ends == {flow.client.port, flow.server.port}:
                octets = entry.get_attr("CTA_COUNTERS_ORIG").get_attr("CTA_COUNTERS_BYTES")
                return way.get_attr("CTA_TUPLE_IP").get_attr(f"CTA_IP_{family}_SRC"), octets
    raise AssertionError("conntrack never saw the flow")


_ACCEPT = {
    "iptables": (
        [["iptables-legacy", "-t", "mangle", "-I", "FORWARD", "-j", "ACCEPT"]],
        [["iptables-legacy", "-t", "mangle", "-D", "FORWARD", "-j", "ACCEPT"]],
    ),
    "nftables": (
        [
            ["nft", "add table ip other"],
            ["nft", "add chain ip other forward { type filter hook forward priority -300; }"],
            ["nft", "add rule ip other forward accept"],
        ],
        [["nft", "delete table ip other"]],
    ),
}
"""How someone else lets everything pass, before the lab's rules or in their very table, and stops to."""


def _accept_everything(name: str) -> None:
    for command in _ACCEPT[name][0]:
        _run(command)


def _stop_accepting(name: str) -> bool:
    for command in _ACCEPT[name][1]:
        _run(command)
    return True


def _run(command: list[str]) -> None:
    lock = {"XTABLES_LOCKFILE": f"/tmp/xtables-{os.getpid()}.lock"}
    subprocess.run(command, check=True, env={**os.environ, **lock})


def _cut_in_a_process_that_dies(name: str, fault: Fault) -> None:
    pid = os.fork()
    if pid == 0:
        open_firewall(name).cut(fault)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def _cut_in_a_new_namespace(name: str, fault: Fault) -> int:
    """Exit status of a child that lives elsewhere: it cuts, counts and heals there, with all that it inherited."""
    pid = os.fork()
    if pid == 0:
        from tests.testbed.places import _CLONE_NEWNET, _unshare

        status = 1
        try:
            _unshare(_CLONE_NEWNET)
            firewall = open_firewall(name)
            firewall.cut(fault)
            if firewall.matched(fault) == Matched(forward=0, return_=0):
                firewall.close()
                status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _hide_legacy_tables() -> None:
    """A kernel without them, as far as this process can tell."""
    import iptc

    def refuse(_: object) -> None:
        raise iptc.IPTCError("can't initialize mangle: b'Table does not exist (do you need to insmod?)'")

    iptc.Table.refresh = refuse
