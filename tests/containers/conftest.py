"""An engine with the lab's images, for the tests that need them."""

from collections.abc import Iterator

import pytest

from lab.testbed.docker.engine import Engine
from lab.testbed.docker.images.image import demo_image
from tests.engines import require_engine, require_lab_image


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[str, str]:
    """The names of the lab's images by their folder in ``containers``."""
    return {"lab": require_lab_image(engine), **{f"demo-{role}": demo_image(role) for role in ("client", "server")}}
