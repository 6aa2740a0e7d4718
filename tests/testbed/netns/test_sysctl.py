import pytest

from lab.core.errors import Unsupported, UsageError
from lab.testbed.agent import sysctl
from lab.testbed.netns import NetnsTestbed


def test_a_setting_belongs_to_one_node(testbed: NetnsTestbed) -> None:
    before = testbed.server.read_sysctl("net.ipv4.tcp_retries2")

    testbed.client.write_sysctl("net.ipv4.tcp_retries2", "4")

    assert testbed.client.read_sysctl("net.ipv4.tcp_retries2") == "4"
    assert testbed.server.read_sysctl("net.ipv4.tcp_retries2") == before
    assert sysctl.read("net.ipv4.tcp_retries2") == before


def test_white_space_is_folded(testbed: NetnsTestbed) -> None:
    testbed.client.write_sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")

    assert testbed.client.read_sysctl("net.ipv4.tcp_rmem") == "4096 131072 6291456"


def test_an_interface_is_named_with_slashes_as_sysctl_does(testbed: NetnsTestbed) -> None:
    testbed.router.write_sysctl("net/ipv4/conf/left/rp_filter", "1")

    assert testbed.router.read_sysctl("net.ipv4.conf.left.rp_filter") == "1"


@pytest.mark.parametrize("name", ["net.ipv4.no_such_key", "net.ipv4", "net.ipv4.tcp_retries2.more"])
def test_a_key_that_the_kernel_lacks_is_unsupported(testbed: NetnsTestbed, name: str) -> None:
    with pytest.raises(Unsupported, match="This kernel has no"):
        testbed.client.read_sysctl(name)
    with pytest.raises(Unsupported, match="This kernel has no"):
        testbed.client.write_sysctl(name, "1")


@pytest.mark.parametrize(
    "name", ["vm.swappiness", "kernel.hostname", "net/../vm/swappiness", "net..ipv4", "", "net", "/net/ipv4", "net.\0"]
)
def test_what_is_not_a_namespaces_own_is_refused(testbed: NetnsTestbed, name: str) -> None:
    with pytest.raises((UsageError, Unsupported)):
        testbed.client.write_sysctl(name, "1")
    with pytest.raises((UsageError, Unsupported)):
        testbed.client.read_sysctl(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("net.ipv4.tcp_retries2", "many"),
        ("net.ipv4.tcp_retries2", "100000"),
        ("net.ipv4.tcp_congestion_control", "no-such-algorithm"),
    ],
)
def test_a_value_that_the_kernel_refuses_is_the_authors_mistake(testbed: NetnsTestbed, name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"refuses '{value}' for {name}"):
        testbed.client.write_sysctl(name, value)


def test_a_key_that_is_to_be_done_without_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sysctl.HIDDEN, "net.ipv4.tcp_rto_max_ms, net.ipv4.tcp_retries2")

    for name in ("net.ipv4.tcp_retries2", "net/ipv4/tcp_retries2"):
        with pytest.raises(Unsupported, match="This kernel has no"):
            sysctl.read(name)
        with pytest.raises(Unsupported, match="This kernel has no"):
            sysctl.write(name, "5")
    assert sysctl.read("net.ipv4.tcp_retries1")
