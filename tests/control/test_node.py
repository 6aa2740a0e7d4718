"""Another language drives the lab: repro/drive_from_node.mjs, over TCP with a token."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lab.control.address import Address
from lab.control.server import beside
from lab.testbed.netns import open_testbed
from tests.control.fakes import until

SCRIPT = Path(__file__).parents[2] / "repro" / "drive_from_node.mjs"
TOKEN = "of-this-test"


def drive(url: str, token: str) -> "subprocess.CompletedProcess[str]":
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here: apt-get install nodejs")
    env = {"PATH": os.environ["PATH"], "LAB_URL": url, "LAB_TOKEN": token}
    return subprocess.run([node, str(SCRIPT)], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_node_script_cuts_a_flow_and_reads_the_verdict(tmp_path: Path) -> None:
    with open_testbed() as testbed:
        testbed.server.spawn_module("lab.programs.server", ["5000"]).wait_for_line('"listening"', 10)
        client = testbed.client.spawn_module("lab.programs.client", ["server", "5000"])
        with beside(testbed.router, Address("127.0.0.1", 0), tmp_path, token=TOKEN) as (controller, place):
            until(lambda: controller.health["capture"] == "running")
            client.wait_for_line('"received"', 10)
            time.sleep(1.1)
            refused = drive(f"http://{place}", "wrong")
            done = drive(f"http://{place}", TOKEN)

    assert refused.returncode == 2
    assert "The token is missing or wrong." in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed: the hole was a hole" in done.stdout
    assert "back at " in done.stdout
