"""Which flow is cut, and what the user is told where there is none, or more than one."""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketSample, TcpState, Timer
from lab.core.uplink import Uplink
from lab.run.flowfinder import (
    Roll,
    find_flow,
    knock,
    refuse_closed,
    wait_for_listener,
    wait_for_talk,
    wait_for_window_probe,
)
from tests.run.fakes import CLIENT, FLOW, SERVER, Clock, FakeNode, FakeProcess, listener, sample

PORT = SERVER.port


def flow_from(port: int, inode: int = 7001, **changes: Any) -> SocketSample:
    return sample(local=Endpoint(CLIENT.address, port), inode=inode, **changes)


def find(
    node: FakeNode, choice: str | None = None, *, clock: Clock | None = None, process: FakeProcess | None = None
) -> FourTuple:
    return find_flow(Roll(node, PORT), process or FakeProcess(), PORT, choice, (clock or Clock()).patience())


def later(clock: Clock, after_s: float, change: Callable[[], None]) -> None:
    clock.at.append((clock.now + after_s, change))


def test_a_listener_is_waited_for() -> None:
    node, clock = FakeNode(name="server"), Clock()
    later(clock, 3.0, lambda: node.socks.append(listener()))

    wait_for_listener(node, FakeProcess(), PORT, clock.patience())
    assert clock.now == pytest.approx(103.0, abs=0.05)


def test_a_server_that_listens_elsewhere_is_told_where() -> None:
    node = FakeNode(name="server", socks=[listener(8000), listener(PORT, "127.0.0.1"), listener(PORT, "::1")])

    with pytest.raises(UsageError, match=r"nobody listens on TCP port 5000; it listens on 127\.0\.0\.1:5000, 8000, \["):
        wait_for_listener(node, FakeProcess(), PORT, Clock().patience())


def test_a_server_that_listens_on_its_loopback_address_is_told_to_listen_on_all() -> None:
    node = FakeNode(name="server", socks=[listener(PORT, "127.0.0.1")])

    with pytest.raises(UsageError, match=r"Fix: let the server listen on 0\.0\.0\.0, or :: with --ipv6"):
        wait_for_listener(node, FakeProcess(), PORT, Clock().patience())


def test_a_server_that_listens_nowhere_is_told_so() -> None:
    with pytest.raises(UsageError, match="no port at all"):
        wait_for_listener(FakeNode(name="server"), FakeProcess(), PORT, Clock().patience())


def test_a_server_that_exits_is_quoted() -> None:
    process = FakeProcess(argv=("srv", "-x"))
    process.say(1.0, "address already in use")
    process.exit(1.1, 98)

    with pytest.raises(UsageError, match=r"'srv -x' ended with status 98 before it listened.*already in use") as told:
        wait_for_listener(FakeNode(name="server"), process, PORT, Clock().patience())
    assert "mend what its last lines say" in str(told.value)


def test_a_server_that_went_to_the_background_is_to_stay() -> None:
    process = FakeProcess(argv=("srv", "-d"))
    process.say(1.0, "started")
    process.exit(1.1, 0)

    with pytest.raises(UsageError, match="Fix: let it stay in the foreground"):
        wait_for_listener(FakeNode(name="server"), process, PORT, Clock().patience())


def test_an_engines_name_server_is_not_among_what_a_server_listens_on() -> None:
    node = FakeNode(name="server", socks=[listener(38999, "127.0.0.11"), listener(8080)])

    with pytest.raises(UsageError, match="; it listens on 8080\\. "):
        wait_for_listener(node, FakeProcess(), PORT, Clock().patience())


def test_the_command_of_an_image_is_no_quoted_word() -> None:
    process = FakeProcess(argv=("the command of image my-server:1",), returncode=1)

    with pytest.raises(UsageError, match=r"^The command of image my-server:1 ended with status 1 before it listened"):
        wait_for_listener(FakeNode(name="server"), process, PORT, Clock().patience())


def test_the_only_flow_is_the_flow() -> None:
    noise = [listener(), sample(local=SERVER, remote=CLIENT), flow_from(40001, state=TcpState.SYN_SENT)]

    assert find(FakeNode(socks=[*noise, sample()])) == FLOW


def test_a_client_that_connects_late_is_waited_for() -> None:
    node, clock = FakeNode(), Clock()
    later(clock, 5.0, lambda: node.socks.append(sample()))

    assert find(node, clock=clock) == FLOW


def test_a_client_that_never_connects_is_told_what_to_do() -> None:
    process = FakeProcess()
    process.say(1.0, "connecting to 10.0.0.1")

    with pytest.raises(UsageError, match=r"no connection to port 5000\. Its last lines: connecting to 10") as caught:
        find(FakeNode(), process=process)
    assert "connect to 'server'" in (caught.value.fix or "")


def test_a_client_that_exits_before_it_connects_is_quoted() -> None:
    process = FakeProcess(returncode=1)

    with pytest.raises(UsageError, match=r"ended with status 1 before it connected\. It printed nothing\."):
        find(FakeNode(), process=process)


def test_two_flows_want_a_choice() -> None:
    with pytest.raises(UsageError, match="2 flows match; they leave the client's ports 40001, 40002") as caught:
        find(FakeNode(socks=[flow_from(40001, 1), flow_from(40002, 2)]))
    assert "--flow first" in (caught.value.fix or "")


def test_a_port_says_which_flow_and_is_waited_for() -> None:
    node, clock = FakeNode(socks=[flow_from(40001, 1)]), Clock()
    later(clock, 2.0, lambda: node.socks.append(flow_from(40002, 2)))

    assert find(node, "40002", clock=clock).client.port == 40002


def test_a_port_that_no_flow_leaves_is_told_which_do() -> None:
    with pytest.raises(UsageError, match="No flow leaves the client's port 40009; those that match leave 40001"):
        find(FakeNode(socks=[flow_from(40001)]), "40009")


def test_age_is_when_a_flow_was_first_seen_not_its_inode() -> None:
    """Inode numbers come in batches per processor: a later socket may have the smaller one."""
    node = FakeNode(socks=[flow_from(40001, inode=9000)])
    roll = Roll(node, PORT)
    roll.look()
    node.socks.append(flow_from(40002, inode=3000))

    assert [s.local.port for s in roll.look()] == [40001, 40002]


def test_within_one_look_inodes_decide() -> None:
    node = FakeNode(socks=[flow_from(40001, inode=12), flow_from(40002, inode=11)])

    assert find(node, "first").client.port == 40002
    assert find(node, "newest").client.port == 40001


def test_a_connection_to_the_same_port_of_another_host_is_none_of_an_uplinks() -> None:
    elsewhere = sample(local=Endpoint(CLIENT.address, 40009), remote=Endpoint("203.0.113.77", PORT))
    node = FakeNode(socks=[elsewhere, sample()])

    assert [s.remote for s in Roll(node, PORT, SERVER.address).look()] == [SERVER]
    assert len(Roll(node, PORT).look()) == 2


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (({"event": "connecting"}, {"event": "connected"}), (True, "203.0.113.9:443 accepts connections.")),
        (
            ({"event": "connecting"}, {"event": "error", "errno": "ECONNREFUSED"}),
            (False, "203.0.113.9:443 cannot be connected to: ECONNREFUSED."),
        ),
        (({"event": "connecting"},), (False, "203.0.113.9:443 did not answer within 5 s.")),
    ],
)
def test_an_outside_server_that_a_client_has_no_flow_with_is_asked_why(
    said: Sequence[Mapping[str, str]], answer: tuple[bool, str]
) -> None:
    probe = FakeProcess()
    for event in said:
        probe.say(100.0, json.dumps({"at": 100.0, **event}))
    node = FakeNode(programs=[probe])

    assert knock(node, Uplink("203.0.113.9", 443, "203.0.113.9"), Clock().patience()) == answer
    assert tuple(probe.argv) == ("lab.programs.client", "203.0.113.9", "443", "--connect-only")
    assert probe.signals == [signal.SIGKILL]


def test_talk_is_a_byte_each_way_beside_the_syn() -> None:
    node, clock = FakeNode(socks=[sample(bytes_acked=1, bytes_received=0)]), Clock()
    later(clock, 1.0, lambda: node.socks.__setitem__(0, sample(bytes_acked=2, bytes_received=0)))
    later(clock, 2.0, lambda: node.socks.__setitem__(0, sample(bytes_acked=2, bytes_received=1)))

    assert wait_for_talk(node, FakeProcess(), FLOW, clock.patience())
    assert clock.now == pytest.approx(102.0, abs=0.05)


def test_one_way_talk_is_none() -> None:
    node = FakeNode(socks=[sample(bytes_received=0)])

    assert not wait_for_talk(node, FakeProcess(), FLOW, Clock().patience())


def test_a_connection_that_ends_before_the_talk_is_said() -> None:
    with pytest.raises(UsageError, match="ended before data had gone both ways"):
        wait_for_talk(FakeNode(), FakeProcess(), FLOW, Clock().patience())


@pytest.mark.parametrize(
    ("state", "who"), [(TcpState.CLOSE_WAIT, "server"), (TcpState.FIN_WAIT1, "client"), (TcpState.FIN_WAIT2, "client")]
)
def test_a_flow_that_is_half_closed_is_not_cut(state: TcpState, who: str) -> None:
    with pytest.raises(UsageError, match=f"The {who} closed the connection before the cut"):
        refuse_closed(sample(state=state), FakeProcess())


def test_a_flow_that_is_gone_is_not_cut() -> None:
    with pytest.raises(UsageError, match="ended before the cut"):
        refuse_closed(None, FakeProcess())
    refuse_closed(sample(), FakeProcess())


def test_a_window_probe_is_fresh_or_waited_for() -> None:
    node, clock = FakeNode(socks=[sample(timer=Timer.PROBE, last_ack_received_s=0.19)]), Clock()
    later(clock, 1.0, lambda: node.socks.__setitem__(0, sample(timer=Timer.PROBE, last_ack_received_s=0.01)))
    wait_for_window_probe(node, FLOW, clock.patience())

    assert clock.now == pytest.approx(101.0, abs=0.05)
    with pytest.raises(UsageError, match="closed window was expected"):
        wait_for_window_probe(FakeNode(socks=[sample()]), FLOW, Clock().patience())
