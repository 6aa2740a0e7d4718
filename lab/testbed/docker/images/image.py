"""Names of the lab's images, and whether the one that is there holds the code that is here."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import lab
from lab.core.errors import EnvironmentNotReady
from lab.testbed.docker.engine import Engine, engine_errors

BASE = "debian:bookworm-slim"
"""What all of the lab's images are built on."""

SOURCE_LABEL = "dev.blackhole-lab.source"
"""Holds the fingerprint of the code in an image."""

OVERRIDE = "LAB_IMAGE"
"""Environment variable: another name for the lab's image."""

BUILD = "lab image build"
"""The fix for an image that is missing or old."""

CODE = ("__init__.py", "py.typed", "core", "control", "host", "live", "pcap", "programs", "testbed")
"""What of the package runs in containers; ``.dockerignore`` names the same."""

KINDS = frozenset({".py", ".typed", ".wav", ".txt", ".jsgf", ".proto"})
"""Files of it: code, the clips, their words and the grammar of live sessions, and the message set of their hosts."""

RECIPE = Path("testbed/docker/recipe")
"""Where a wheel keeps ``FILES``, in the package."""

FILES = (
    "containers/lab/Dockerfile",
    "containers/demo-client/Dockerfile",
    "containers/demo-server/Dockerfile",
    "requirements/build.lock",
    "requirements/image.lock",
)
"""What else an image is made from, relative to ``recipe_root``."""


def lab_image() -> str:
    """The name and tag of the image with exactly this code; two checkouts on one engine do not take each other's."""
    return _name_of(fingerprint())


def versioned_image() -> str:
    """The name of the image of this version that was built last; compose.yaml takes that one."""
    return f"blackhole-lab/lab:{lab.__version__}"


def demo_image(role: str) -> str:
    """The name and tag of the image with the lab's own ``client`` or ``server``."""
    return f"blackhole-lab/demo-{role}:{lab.__version__}"


def is_built(engine: Engine) -> bool:
    """Whether the engine has the lab's image, and it holds the code that is here."""
    code = fingerprint()
    return _source(engine, _name_of(code)) == code


def require_image(engine: Engine) -> str:
    """The name of the lab's image, which is there and holds the code that is here.

    Raises:
        EnvironmentNotReady: it is missing, or older than the code.
    """
    code = fingerprint()
    name = _name_of(code)
    source = _source(engine, name)
    if source is None:
        raise EnvironmentNotReady(f"The lab's image {name} is not on this engine.", fix=BUILD)
    if source != code:
        raise EnvironmentNotReady(f"The lab's image {name} was built from other code than this lab's.", fix=BUILD)
    return name


def package_root() -> Path:
    """The folder of the package that runs here; its code is what goes into the image."""
    return Path(lab.__file__).parent


def recipe_root() -> Path:
    """The folder that holds ``FILES``: the repository, or what a wheel brought of it."""
    packed = package_root() / RECIPE
    return packed if packed.is_dir() else package_root().parent


def code_files() -> Iterator[Path]:
    """Every file of ``CODE``, in order, relative to ``package_root``."""
    root = package_root()
    for name in CODE:
        place = root / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            relative = path.relative_to(root)
            if path.is_file() and path.suffix in KINDS and RECIPE not in relative.parents:
                yield relative


def fingerprint() -> str:
    """Of all that the image is made from; another one means to build anew."""
    digest = hashlib.sha256()
    sources = [(f"lab/{path}", package_root() / path) for path in code_files()]
    for name, path in [*sources, *((name, recipe_root() / name) for name in FILES)]:
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _name_of(code: str) -> str:
    return os.environ.get(OVERRIDE) or f"{versioned_image()}-{code}"


def _source(engine: Engine, name: str) -> str | None:
    """The fingerprint of the code in an image, empty where somebody else built it; None where there is no image."""
    from docker.errors import ImageNotFound

    with engine_errors(f"looking at the image {name}"), contextlib.suppress(ImageNotFound):
        found: dict[str, str] = engine.client.api.inspect_image(name)["Config"]["Labels"] or {}
        return found.get(SOURCE_LABEL, "")
    return None
