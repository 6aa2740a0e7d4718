"""What a testbed's programs are promised to find loaded, they find loaded in containers too."""

import pytest

from lab.testbed.docker.testbed import DockerTestbed
from lab.testbed.ports import TestbedSpec

LOOK = ("-n", "1", "-r", "1", "-s", "import sys; print('loaded', 'colorsys' in sys.modules, 'cmd' in sys.modules)", "")


@pytest.mark.usefixtures("lab_image")
def test_what_is_preloaded_a_program_finds_loaded_and_what_does_not_exist_is_its_own_affair() -> None:
    with DockerTestbed(TestbedSpec(preload=("colorsys", "lab.no_such_module"))) as testbed:
        for node in (testbed.client, testbed.server):
            program = node.spawn_module("timeit", LOOK)
            assert program.wait_for_line("^loaded", 10).text == "loaded True False"
