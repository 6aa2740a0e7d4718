"""What the container backend asks of a machine, for ``lab doctor``: engine, image, and what is good to have."""

from collections.abc import Callable

from lab.core.errors import LabError, Unsupported
from lab.testbed.docker import engine as engines
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.images import image
from lab.testbed.requirement import Requirement, Status, optional

ENGINE = "Docker engine"
IMAGE = "the lab's image"
RYUK = "Testcontainers' reaper"


def inspect(connect: Callable[[], Engine] = engines.connect) -> list[Requirement]:
    """Every requirement of the container backend; none is one of the embedded testbed.

    Args:
        connect: Finds the engine.
    """
    try:
        found = connect()
    except LabError as error:
        return [_refused(ENGINE, error)]
    with found:
        try:
            found.require_local()
        except LabError as error:
            return [_refused(ENGINE, error)]
        return [
            optional(ENGINE, ok=True, seen=f"{found.version} at {found.address}", fix=""),
            _image(found),
            _ryuk(found),
        ]


def is_ready(requirements: list[Requirement]) -> bool:
    """Whether containers can be had: an engine on this kernel, and the image of this code."""
    return {one.name for one in requirements if one.status is Status.OK} >= {ENGINE, IMAGE}


def _image(engine: Engine) -> Requirement:
    name = image.lab_image()
    ok = image.is_built(engine)
    return optional(IMAGE, ok=ok, seen=name if ok else f"{name} is not there", fix=image.BUILD)


def _ryuk(engine: Engine) -> Requirement:
    from testcontainers.core.config import testcontainers_config

    name = str(testcontainers_config.ryuk_image)
    ok = engines.has_image(engine, name)
    seen = name if ok else f"{name} is not there; the lab's own does without it"
    return optional(RYUK, ok=ok, seen=seen, fix=f"docker pull {name}")


def _refused(name: str, error: LabError) -> Requirement:
    restricted = isinstance(error, Unsupported) or "may not" in error.message
    status = Status.RESTRICTED if restricted else Status.OPTIONAL_MISSING
    return Requirement(name, status, False, error.message, error.fix)
