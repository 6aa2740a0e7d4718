"""A controller over a router that is not there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.control.controller import Controller
from tests.control.fakes import FakeRouter, until


@pytest.fixture
def router() -> FakeRouter:
    return FakeRouter()


@pytest.fixture
def controller(router: FakeRouter, tmp_path: Path) -> Iterator[Controller]:
    with Controller(router, tmp_path) as controller:
        until(lambda: controller.health["capture"] == "running")
        yield controller
