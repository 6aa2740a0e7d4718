"""What is said before a line comes, looked at when it comes, and said anew from that look."""

from typing import Any

import pytest

from lab.core.errors import InvalidRun
from lab.core.socket import SocketOptions
from lab.run.foresight import Foresight
from tests.run.fakes import CLIENT, FLOW, SERVER, FakeNode, nodes, sample, sysctls_of_linux
from tests.run.test_spec import spec

QUICK = sysctls_of_linux() | {"net.ipv4.tcp_retries2": "3", "net.ipv4.tcp_rto_max_ms": "1000"}


def made(**client: Any) -> tuple[Foresight, FakeNode, FakeNode]:
    fake, testbed = nodes(
        client=FakeNode(socks=[sample()], **client),
        server=FakeNode("server", SERVER.address, socks=[sample(local=SERVER, remote=CLIENT)]),
    )
    return Foresight(spec(), testbed, {"client": QUICK, "server": QUICK}, 250), fake.client, fake.server


def test_both_ends_are_spoken_of_each_from_its_own_socket() -> None:
    foresight, _, _ = made(options=SocketOptions(user_timeout_s=2.0))
    stated = foresight.forecast(FLOW)

    assert set(stated) == {"client", "server"}
    assert stated["client"].sending.window_s != stated["server"].sending.window_s


def test_the_later_look_decides_with_the_options_that_were_read_before() -> None:
    foresight, client, _ = made(options=SocketOptions(keepalive=True, keepalive_idle_s=9.0))
    stated = foresight.forecast(FLOW)
    client.socks, client.options = [sample(at=107.0, rto_s=0.4)], None
    anew = foresight.anew(stated, foresight.look(FLOW))

    assert anew["client"].options == SocketOptions(keepalive=True, keepalive_idle_s=9.0)
    assert anew["client"].sending_situation.rto_s == 0.4
    assert anew["client"].sample is not None
    assert anew["client"].sample.at == 107.0
    assert stated["client"].sending_situation.rto_s == 0.204


def test_options_that_were_set_in_between_are_found_and_a_closed_socket_has_none() -> None:
    foresight, client, _ = made(options=SocketOptions())
    stated = foresight.forecast(FLOW)
    foresight.require_options(FLOW, stated)
    client.options = None
    foresight.require_options(FLOW, stated)
    client.options = SocketOptions(user_timeout_s=1.0)

    with pytest.raises(InvalidRun, match="client's program set socket options"):
        foresight.require_options(FLOW, stated)


def test_a_flow_that_is_gone_cannot_be_looked_at() -> None:
    foresight, client, _ = made()
    client.socks = []

    with pytest.raises(InvalidRun, match="does not list"):
        foresight.look(FLOW)
