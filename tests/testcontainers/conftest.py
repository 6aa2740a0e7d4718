"""An image as a user may have one: a small HTTP server and its client, without root, without a shell."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.testbed.docker.engine import Engine, has_image
from lab.testbed.docker.images.image import demo_image
from tests.engines import do_without, require_engine, require_lab_image


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def app(engine: Engine) -> Iterator[str]:
    """Name of the image, which is gone afterwards."""
    require_lab_image(engine)
    if not has_image(engine, demo_image("server")):
        do_without("There is no demo image; lab image build")
    name = f"lab-test-app:{secrets.token_hex(4)}"
    folder = str(Path(__file__).parent / "image")
    engine.client.images.build(path=folder, tag=name, buildargs={"BASE": demo_image("server")}, rm=True, forcerm=True)
    try:
        yield name
    finally:
        engine.client.images.remove(name, force=True)
