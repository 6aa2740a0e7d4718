"""A hole inside one namespace, with real packets: the client's stack must not know of it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab.testbed.capture
import lab.testbed.firewall_iptables
import lab.testbed.firewall_nftables  # noqa: F401 - loaded before the places are forked, as a warm server would have it
from lab.core.errors import Unsupported, UsageError
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Direction, FourTuple
from lab.core.segment import Segment
from lab.core.socket import Timer
from lab.pcap import read_packets
from lab.testbed import sink
from lab.testbed.capture import Capture
from lab.testbed.counters import read_counters
from lab.testbed.firewall import Firewall, open_firewall
from lab.testbed.sockets import list_sockets
from tests.testbed import places as here
from tests.testbed.places import Places, ip, receive, send, three_places

FAMILIES = [pytest.param(socket.AF_INET, id="ipv4"), pytest.param(socket.AF_INET6, id="ipv6")]
SO_MARK = 36
"""asm-generic/socket.h; the socket module has no name for it."""


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def firewall_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def places() -> Iterator[Places]:
    with three_places() as places:
        places.client.call(_wait_for_link_local)
        yield places


def has_kind(kind: str) -> bool:
    words = ["unshare", "--user", "--map-root-user", "--net", "ip", "link", "add", "name", "try0", "type", kind]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.fixture(params=[kind for kind in sink.KINDS if has_kind(kind)])
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind that this kernel has."""
    return str(request.param)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sender_believes_that_its_segments_left(
    places: Places, firewall_name: str, kind: str, family: socket.AddressFamily, tmp_path: Path
) -> None:
    flow = places.connect(family)
    places.client.call(_open, firewall_name, (kind,))
    places.client.call(_start_capture, tmp_path)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)
    before = places.client.call(_copies)

    places.client.call(send, flow, b"lost")

    assert places.client.call(_sent_again, before, 2)
    assert places.client.call(_timer, flow) is Timer.RETRANSMIT
    assert not places.server.call(_arrives, flow, 4)

    places.client.call(_heal, fault)
    assert places.server.call(receive, flow, 4, 60.0) == b"lost"
    sunk = places.client.call(_stop_capture)
    assert len(sunk) >= 3
    assert {(s.source, s.destination) for s in sunk} == {flow.ends(Direction.FORWARD)}, "and nothing else fell in"
    assert {s.length for s in sunk} == {4}
    assert places.client.call(_matched, fault).forward == len(sunk)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_go_dark_and_a_new_flow_passes(
    places: Places, firewall_name: str, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    places.client.call(_open, firewall_name)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)

    places.server.call(send, flow, b"back")

    assert not places.client.call(_arrives, flow, 4)
    assert places.client.call(_matched, fault).return_ >= 1
    other = places.connect(family)
    places.client.call(send, other, b"new")
    assert places.server.call(receive, other, 3) == b"new"
    places.client.call(_heal, fault)
    assert places.client.call(receive, flow, 4) == b"back"


@pytest.mark.parametrize("direction", [Cut.FORWARD, Cut.RETURN])
def test_one_way_is_cut_alone(places: Places, firewall_name: str, direction: Cut) -> None:
    flow = places.connect()
    places.client.call(_open, firewall_name)
    places.client.call(_cut, Fault(flow, direction, placement=Placement.CLIENT_SINK))

    places.client.call(send, flow, b"fore")
    places.server.call(send, flow, b"back")

    assert places.server.call(_arrives, flow, 4) == (direction is Cut.RETURN)
    assert places.client.call(_arrives, flow, 4) == (direction is Cut.FORWARD)


def test_the_servers_namespace_can_have_the_hole_as_well(places: Places, firewall_name: str) -> None:
    flow = places.connect()
    places.server.call(_open, firewall_name)
    fault = Fault(flow, placement=Placement.SERVER_SINK)
    places.server.call(_cut, fault)

    places.client.call(send, flow, b"fore")
    places.server.call(send, flow, b"back")

    assert not places.server.call(_arrives, flow, 4)
    assert not places.client.call(_arrives, flow, 4)
    assert places.server.call(_timer, FourTuple(flow.server, flow.client)) is Timer.RETRANSMIT
    assert places.server.call(_matched, fault).forward >= 1
    assert places.server.call(_matched, fault).return_ >= 1


def test_a_namespace_without_a_sink_refuses_the_fault(places: Places, firewall_name: str) -> None:
    places.client.call(_open_rules, firewall_name)
    with pytest.raises(UsageError, match="A sink was expected in this namespace"):
        places.client.call(_cut, Fault(places.connect(), placement=Placement.CLIENT_SINK))


@pytest.mark.parametrize("family", FAMILIES)
def test_reverse_path_filters_let_the_healed_flow_and_others_pass(
    places: Places, firewall_name: str, family: socket.AddressFamily
) -> None:
    places.client.call(_write, "/proc/sys/net/ipv4/conf/all/rp_filter", "1")
    places.client.call(_write, "/proc/sys/net/ipv4/conf/all/src_valid_mark", "1")
    flow = places.connect(family)
    places.client.call(_open, firewall_name)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    other = places.connect(family)
    places.server.call(send, other, b"here")
    assert places.client.call(receive, other, 4) == b"here"
    places.client.call(_heal, fault)
    assert places.server.call(receive, flow, 4) == b"lost"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mark_of_the_program_stays_on_its_packets(
    places: Places, firewall_name: str, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    places.client.call(_mark_socket, flow, 0x5)
    places.client.call(_open, firewall_name)
    places.client.call(_count_marks, 0x5, 0xFF)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert places.client.call(_marks_counted) == places.client.call(_matched, fault).forward


@pytest.mark.parametrize("family", FAMILIES)
def test_policy_rules_of_others_do_not_lead_past_the_sink(
    places: Places, firewall_name: str, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    places.client.call(_add_policy, family)
    places.client.call(_open, firewall_name)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert places.client.call(_timer, flow) is Timer.RETRANSMIT


def test_a_rule_of_others_that_sets_the_whole_mark_does_not_lead_past_the_sink(
    places: Places, firewall_name: str
) -> None:
    flow = places.connect()
    places.client.call(_open, firewall_name)
    places.client.call(_overwrite_marks, firewall_name)
    fault = Fault(flow, placement=Placement.CLIENT_SINK)
    places.client.call(_cut, fault)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert places.client.call(_timer, flow) is Timer.RETRANSMIT


@pytest.mark.parametrize("family", FAMILIES)
def test_neither_path_mtu_nor_segment_size_changes_and_the_capture_shows_what_a_wire_would_carry(
    places: Places, firewall_name: str, kind: str, family: socket.AddressFamily, tmp_path: Path
) -> None:
    """Whatever the way's MTU: here it is larger than a new device's own, and segments are sent in bundles."""
    for place, device in ((places.client, "up0"), (places.router, "left0")):
        place.call(ip, "link", "set", device, "mtu", "9000")
    for place, device in ((places.server, "up0"), (places.router, "right0")):
        place.call(ip, "link", "set", device, "mtu", "9000")
    flow = places.connect(family)
    places.client.call(_open, firewall_name, (kind,))
    places.client.call(_start_capture, tmp_path)
    places.client.call(_cut, Fault(flow, placement=Placement.CLIENT_SINK))
    size, before = places.client.call(_segment_size, flow), places.client.call(_copies)
    assert size > 8000

    places.client.call(send, flow, bytes(60_000))

    assert places.client.call(_sent_again, before, 2)
    assert places.client.call(_segment_size, flow) == size
    lengths = [s.length for s in places.client.call(_stop_capture)]
    assert max(lengths) == size
    assert sum(lengths) > 60_000, "all of it, and copies"


def test_a_sink_leaves_the_namespace_as_it_was(places: Places, kind: str) -> None:
    before = places.client.call(_state)
    meanwhile = places.client.call(_state_with_a_sink, kind)
    assert places.client.call(_state) == before
    assert meanwhile != before
    devices = [line.split() for line in meanwhile if line.startswith(f"-brief address {sink.DEVICE}")]
    assert devices
    assert all(len(words) == 4 for words in devices), "name and state, but no address that could speak"
    assert not [line for line in meanwhile if "ff00::/8 dev lab-sink" in line], "nobody's multicast ends there"


def test_a_second_sink_is_refused_and_harms_the_first_one_not(places: Places) -> None:
    flow = places.connect()
    places.client.call(_open, "nftables")
    places.client.call(_cut, Fault(flow, placement=Placement.CLIENT_SINK))
    with pytest.raises(UsageError, match=r"it has rule fwmark 0x40000000.*Fix: end the other `lab attach`"):
        places.client.call(sink.Sink)
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)


def test_what_a_killed_owner_left_is_found_and_removed(places: Places) -> None:
    before = places.client.call(_state)
    places.client.call(_open_sink_in_a_process_that_is_killed)
    left = places.client.call(sink.find_leftovers)
    assert [one.kind for one in left] == ["rule", "rule", "device"]
    assert places.client.call(sink.remove_leftovers) == left
    assert places.client.call(sink.remove_leftovers) == []
    assert places.client.call(_state) == before


def test_a_device_of_somebody_elses_by_that_name_is_left_alone(places: Places) -> None:
    places.client.call(ip, "link", "add", sink.DEVICE, "type", "veth", "peer", "name", "other0")
    before = places.client.call(_state)
    with pytest.raises(UsageError, match="The name lab-sink was expected to be free"):
        places.client.call(sink.Sink)
    assert places.client.call(sink.remove_leftovers) == []
    assert places.client.call(_state) == before


def test_a_sink_that_fails_half_way_leaves_nothing(places: Places) -> None:
    places.client.call(ip, "rule", "add", "priority", "0", "lookup", "main")
    before = places.client.call(_state)
    with pytest.raises(Unsupported, match="comes before all others"):
        places.client.call(sink.Sink)
    assert places.client.call(_state) == before


def test_mark_and_table_are_ones_that_nobody_uses(places: Places) -> None:
    places.client.call(ip, "rule", "add", "fwmark", "0x50000000/0x70000000", "lookup", "1000", "priority", "50")
    places.client.call(ip, "route", "add", "203.0.113.0/24", "dev", "up0", "table", "1001")
    assert places.client.call(_mark_and_tables) == (1 << 27, {1002, 1003})


def test_ipv6_that_new_devices_do_not_have_is_switched_on_for_the_sink_alone(
    places: Places, firewall_name: str, kind: str
) -> None:
    places.client.call(_write, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    flow = places.connect(socket.AF_INET6)
    places.client.call(_open, firewall_name, (kind,))
    places.client.call(_cut, Fault(flow, placement=Placement.CLIENT_SINK))
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)
    assert places.client.call(_timer, flow) is Timer.RETRANSMIT


def test_ipv6_that_new_devices_cannot_have_is_said_at_the_cut(places: Places, firewall_name: str) -> None:
    """As in a container whose /proc/sys is read-only."""
    places.client.call(_write, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    places.client.call(_hide_ipv6_switch)
    places.client.call(_open, firewall_name)
    with pytest.raises(Unsupported, match="IPv6 is switched off for new devices"):
        places.client.call(_cut, Fault(places.connect(socket.AF_INET6), placement=Placement.CLIENT_SINK))
    flow = places.connect()
    places.client.call(_cut, Fault(flow, placement=Placement.CLIENT_SINK))
    places.client.call(send, flow, b"lost")
    assert not places.server.call(_arrives, flow, 4)


def test_a_socket_bound_to_a_device_is_not_led_away(places: Places, firewall_name: str) -> None:
    """Known: its packets are looked up with that device, so nothing of them falls into the sink. Nothing is dropped
    either, so a run finds them crossing."""
    flow = places.connect()
    places.client.call(_bind_to_device, flow, "up0")
    places.client.call(_open, firewall_name)
    places.client.call(_cut, Fault(flow, Cut.FORWARD, placement=Placement.CLIENT_SINK))
    places.client.call(send, flow, b"away")
    assert places.server.call(receive, flow, 4) == b"away"


_firewall: Firewall | None = None
_sink: sink.Sink | None = None
_capture: Capture | None = None
_folder = Path()


def _wait_for_link_local(timeout_s: float = 30.0) -> None:
    """The kernel gives a device this address in its own time, and its route even later."""
    deadline = time.monotonic() + timeout_s
    while not any("local fe80::" in line for line in _state()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no link-local address within {timeout_s:g} s")
        time.sleep(0.02)


def _open(name: str, kinds: tuple[str, ...] = sink.KINDS) -> None:
    global _sink
    _sink = sink.Sink(kinds)
    _open_rules(name)


def _open_rules(name: str) -> None:
    global _firewall
    _firewall = open_firewall(name)


def _cut(fault: Fault) -> None:
    assert _firewall is not None
    _firewall.cut(fault)


def _heal(fault: Fault) -> None:
    assert _firewall is not None
    _firewall.heal(fault)


def _matched(fault: Fault) -> Matched:
    assert _firewall is not None
    return _firewall.matched(fault)


def _start_capture(folder: Path) -> None:
    global _capture, _folder
    # No filter: nothing but the flow may fall in, neighbour discovery and multicast reports included.
    _capture, _folder = Capture.of({"sink": (sink.DEVICE, "the sink")}), folder
    _capture.start(folder, "")


def _stop_capture() -> list[Segment]:
    assert _capture is not None
    summary = _capture.stop()
    packets = list(read_packets(summary.files["sink"]))
    assert len(packets) == summary.packets["sink"], "every packet is TCP"
    return [packet for packet in packets if isinstance(packet, Segment)]


def _arrives(flow: FourTuple, number: int) -> bool:
    try:
        receive(flow, number, 0.3)
    except TimeoutError:
        return False
    return True


def _timer(flow: FourTuple) -> Timer:
    return next(one.timer for one in list_sockets() if (one.local, one.remote) == tuple(flow))


def _copies() -> int:
    return read_counters()["TcpRetransSegs"]


def _sent_again(before: int, number: int, timeout_s: float = 15.0) -> bool:
    """Whether the kernel sends so many copies; the first may take seconds where the handshake did."""
    deadline = time.monotonic() + timeout_s
    while _copies() - before < number:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def _hide_ipv6_switch() -> None:
    sink._IPV6_SWITCH = "/proc/none/{}"


def _mark_socket(flow: FourTuple, mark: int) -> None:
    here._sockets[flow].setsockopt(socket.SOL_SOCKET, SO_MARK, mark)


def _bind_to_device(flow: FourTuple, device: str) -> None:
    here._sockets[flow].setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())


def _segment_size(flow: FourTuple) -> int:
    return here._sockets[flow].getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def _nft(commands: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=commands, text=True, check=True)


def _count_marks(mark: int, mask: int) -> None:
    _nft(
        "add table inet other\nadd counter inet other seen\n"
        "add chain inet other post { type filter hook postrouting priority 0; }\n"
        f"add rule inet other post oifname {sink.DEVICE} meta mark and {mask:#x} == {mark:#x} counter name seen\n"
    )


def _marks_counted() -> int:
    told = subprocess.run(["nft", "list", "counter", "inet", "other", "seen"], check=True, capture_output=True).stdout
    return int(told.split(b"packets ")[1].split()[0])


def _overwrite_marks(firewall: str) -> None:
    """As others do it who know of no masks, in the tables that the lab's rules are in."""
    if firewall == "iptables":
        subprocess.run(
            ["iptables-legacy", "-t", "mangle", "-A", "OUTPUT", "-j", "MARK", "--set-mark", "7"],
            check=True,
            env={**os.environ, "XTABLES_LOCKFILE": os.devnull},
        )
    else:
        _nft(
            "add table inet other\nadd chain inet other out { type route hook output priority -150; }\n"
            "add rule inet other out meta mark set 7\n"
        )


def _add_policy(family: socket.AddressFamily) -> None:
    """Everything goes by a table of somebody's own, before the main one."""
    number, gateway = ("-4", "192.0.2.1") if family == socket.AF_INET else ("-6", "2001:db8:1::1")
    ip(number, "route", "add", "default", "via", gateway, "dev", "up0", "table", "77")
    ip(number, "rule", "add", "priority", "10", "lookup", "77")


def _state() -> list[str]:
    """All that a sink could change, as iproute2 shows it."""
    questions: list[list[str]] = [
        ["-4", "rule"],
        ["-6", "rule"],
        ["-4", "route", "show", "table", "all"],
        ["-6", "route", "show", "table", "all"],
        ["-brief", "address"],
    ]
    told = (subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout for words in questions)
    return [" ".join((*words, line)) for words, text in zip(questions, told, strict=True) for line in text.splitlines()]


def _state_with_a_sink(kind: str) -> list[str]:
    with sink.Sink((kind,)):
        return _state()


def _mark_and_tables() -> tuple[int, set[int]]:
    with sink.Sink() as made:
        rules = [line for line in _state() if "proto 176" in line and "lookup" in line]
        return made.mark, {int(line.split("lookup ")[1].split()[0]) for line in rules}


def _open_sink_in_a_process_that_is_killed() -> None:
    child = os.fork()
    if child == 0:
        try:
            _open("nftables")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
