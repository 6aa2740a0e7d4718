"""In a testbed's node the server's TCP gives up on a client that vanished, and the session stays locked."""

import json
import sys
from collections.abc import Iterator

import pytest

from lab.core.profiles import FAST
from lab.run.arrange import apply_settings
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import TestbedSpec

PORT = 8765

TALKS = f"""
import sys
from websockets.sync.client import connect
from lab.live.protocol.paths import developer
handle = sys.argv[1] if len(sys.argv) > 1 else None
resumption = '{{"handle": "%s"}}' % handle if handle else "{{}}"
with connect(f"ws://server:{PORT}{{developer()}}", ping_interval=None) as client:
    client.send('{{"setup": {{"model": "m", "sessionResumption": %s}}}}' % resumption)
    client.send('{{"realtimeInput": {{"text": "Did you book it?"}}}}')
    while True:
        print(client.recv().decode()[:200], flush=True)
"""


@pytest.fixture
def testbed() -> Iterator[NetnsTestbed]:
    with NetnsTestbed(TestbedSpec()) as opened:
        apply_settings(opened.server, FAST, {})
        yield opened


def test_a_client_that_vanished_in_mid_sentence_is_a_tcp_timeout_and_its_session_is_held(testbed: NetnsTestbed) -> None:
    server = testbed.server.spawn_module("lab.live.server", ["--port", str(PORT)])
    server.wait_for_line('"listening"', 20)
    client = testbed.client.spawn((sys.executable, "-c", TALKS))
    named = client.wait_for_line("newHandle", 10)
    client.wait_for_line("inlineData", 10)

    testbed.move_client()

    gone = json.loads(server.wait_for_line('"detach"', 20).text)
    assert (gone["how"], gone["state"]) == ("TCP timeout", "held")
    assert gone["detail"].startswith(("ETIMEDOUT", "EHOSTUNREACH"))
    handle = json.loads(named.text)["sessionResumptionUpdate"]["newHandle"]
    late = testbed.client.spawn((sys.executable, "-c", TALKS, handle))
    refused = json.loads(server.wait_for_line('"refused"', 10).text)
    assert (refused["cause"], refused["code"]) == ("held", 1011)
    late.wait(10)
    assert any("1011" in line.text for line in late.lines)
    server.write("quit\n")
    assert server.wait(10) == 0
