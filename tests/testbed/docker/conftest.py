"""The engine of this machine and the lab's image, for every test of the container backend."""

from collections.abc import Iterator

import pytest

from lab.testbed.docker.engine import Engine
from tests.engines import require_engine, require_lab_image


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def lab_image(engine: Engine) -> str:
    return require_lab_image(engine)
