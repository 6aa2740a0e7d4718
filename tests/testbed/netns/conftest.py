"""One testbed per test file, where the file does not need its own."""

from collections.abc import Iterator

import pytest

from lab.testbed.netns import NetnsTestbed


@pytest.fixture(scope="module")
def testbed() -> Iterator[NetnsTestbed]:
    with NetnsTestbed() as up:
        yield up
