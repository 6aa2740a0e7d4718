"""What tests of the container backend need of this machine: an engine, and the lab's image on it."""

import os
from typing import NoReturn

import pytest

from lab.core.errors import LabError
from lab.testbed.docker.engine import Engine, connect
from lab.testbed.docker.images.image import require_image


def require_engine() -> Engine:
    """This machine's engine; the test is skipped where there is none, and fails with CI=true."""
    try:
        engine = connect()
        engine.require_local()
    except LabError as error:
        do_without(str(error))
    return engine


def require_lab_image(engine: Engine) -> str:
    """The lab's image with this code in it; the test is skipped where it is not there, and fails with CI=true."""
    try:
        return require_image(engine)
    except LabError as error:
        do_without(str(error))


def do_without(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
