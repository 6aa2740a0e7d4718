"""An engine for the tests that need one."""

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from lab.core.errors import LabError
from lab.testbed.docker.engine import Engine, connect
from lab.testbed.docker.image import demo_image, require_image


def absent(reason: str) -> NoReturn:
    """Skip, or fail where everything has to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that answers; the test is skipped where none does."""
    try:
        found = connect()
    except LabError as error:
        absent(str(error))
    with found:
        yield found


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[str, str]:
    """The names of the lab's images by folder of ``containers``; skipped where they are not built."""
    try:
        found = {"lab": require_image(engine)}
    except LabError as error:
        absent(str(error))
    return {**found, **{f"demo-{role}": demo_image(role) for role in ("client", "server")}}
