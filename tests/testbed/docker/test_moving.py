"""The client's address changes in containers as in namespaces: the old connection is dark for good, new ones pass."""

import pytest

from lab.testbed.docker.testbed import DockerTestbed

PORT = 5000
SILENT_S = 4.5
"""A router that asks in vain for a neighbour says so after three seconds."""


@pytest.mark.usefixtures("lab_image")
def test_what_was_connected_is_dark_and_what_comes_new_passes_from_the_new_address() -> None:
    with DockerTestbed() as testbed:
        server = testbed.server.spawn_module("lab.programs.server", (str(PORT), "--interval", "0.2"))
        server.wait_for_line("listening", 10)
        old = testbed.client.spawn_module("lab.programs.client", ("server", str(PORT), "--interval", "0.2"))
        old.wait_for_line('"received"', 10)
        was = (testbed.client.ipv4, testbed.client.ipv6)
        now = testbed.move_client()
        since = old.lines[-1].at + 0.3
        assert now == testbed.client.ipv4
        assert not set(was) & {testbed.client.ipv4, testbed.client.ipv6}
        for address in (testbed.server.ipv4, testbed.server.ipv6):
            new = testbed.client.spawn_module("lab.programs.client", (address, str(PORT), "--idle-after", "1"))
            new.wait_for_line('"received"', 10)
        with pytest.raises(TimeoutError):
            old.wait_for_line('"received"', SILENT_S, since=since)
        assert f'"{now}"' in server.wait_for_line('"accepted", "connection": 2,', 10).text
        assert testbed.server.counters().get("IcmpInDestUnreachs", 0) == 0
        assert old.returncode is None
