"""Builds the lab's images through the engine's socket; the ``docker`` command is not needed.

The classic builder does it: the engine has it since ever, while BuildKit asks for a client with a session of its own.
"""

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab
from lab.core.errors import EnvironmentNotReady, LabError
from lab.testbed.docker.engine import Engine, engine_errors, has_image
from lab.testbed.docker.images import context, image

Tell = Callable[[str], None]
"""Takes a line of progress."""

PULL_TIMEOUT_S = 20.0
"""For a registry's first answer and all of a small image; one that cannot be reached must not hold up the rest."""

SILENCE_TIMEOUT_S = 900
"""How long the engine may say nothing in the middle of a build; for ``connect``."""

BASE_LABEL = "dev.blackhole-lab.base"
"""Marks a base that was made here; not the mark of the lab's own things, which images built on it would inherit."""

STAGE_AGE_S = 600.0
"""Stages that are older than this are nobody's any more once a new one was built."""

_STAGES = {"dangling": True, "label": "dev.blackhole-lab.stage"}

STEP_WIDTH = 76
"""Columns of a step as progress shows it."""

LAST_LINES = 12
"""Of a failed build's output, as its error shows them."""


@dataclass(frozen=True, slots=True)
class Built:
    """One image after a build."""

    name: str
    """With its tag."""

    id: str

    size_bytes: int


def build_base(engine: Engine, tell: Tell) -> str:
    """See that the base is there: present, pulled, or made with debootstrap.

    Returns:
        Which of ``present``, ``pulled``, ``made``.

    Raises:
        EnvironmentNotReady: it is not to be had.
    """
    if has_image(engine, image.BASE):
        return "present"
    if pull(engine, image.BASE):
        return "pulled"
    tell(f"{image.BASE} is not to be had from a registry; making it with debootstrap (half a minute)")
    with tempfile.TemporaryDirectory(prefix="blackhole-lab-base-") as folder:
        archive = Path(folder, "base.tar")
        _make_base(archive)
        repository, _, tag = image.BASE.partition(":")
        changes = [f"LABEL {BASE_LABEL}=debootstrap", 'CMD ["bash"]']
        with engine_errors(f"importing {image.BASE}"):
            engine.client.api.import_image_from_file(str(archive), repository=repository, tag=tag, changes=changes)
    return "made"


def build_all(engine: Engine, tell: Tell, *, cached: bool = True) -> list[Built]:
    """Build the lab's image and the two demo images.

    Args:
        engine: Where.
        tell: Takes what is being done, line by line.
        cached: Whether steps of earlier builds may be used again.

    Raises:
        EnvironmentNotReady: a build failed.
    """
    archive = context.pack(context.machine_settings())
    names = {"lab": image.lab_image(), **{f"demo-{role}": image.demo_image(role) for role in ("client", "server")}}
    built = []
    for folder, name in names.items():
        tell(f"building {name}")
        with engine_errors(f"building {name}"), _replacing(engine, name):
            _build(engine, archive, f"containers/{folder}/Dockerfile", name, tell, cached=cached)
        found = engine.client.images.get(name)
        if folder == "lab" and name != image.versioned_image():
            found.tag(image.versioned_image())
        built.append(Built(name, found.id, found.attrs["Size"]))
    return built


def pull(engine: Engine, name: str, timeout_s: float = PULL_TIMEOUT_S) -> bool:
    """Try to get an image from its registry; whether it is there now.

    The engine itself waits for minutes where nothing answers, so the wait is on a thread that ends with this process.
    """

    def try_it() -> None:
        with contextlib.suppress(LabError), engine_errors(f"pulling {name}"):
            engine.client.images.pull(name)
            done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=try_it, name=f"pull {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return bool(done)


def find_reaper(engine: Engine) -> str | None:
    """The image of Testcontainers' own reaper, as the installed version names it; None where it is not to be had."""
    from testcontainers.core.config import testcontainers_config

    name = str(testcontainers_config.ryuk_image)
    return name if has_image(engine, name) or pull(engine, name) else None


def _build(engine: Engine, archive: bytes, recipe: str, name: str, tell: Tell, *, cached: bool) -> None:
    arguments = {**context.proxies(), "BASE": image.BASE, "VERSION": lab.__version__, "SOURCE": image.fingerprint()}
    lines = engine.client.api.build(
        fileobj=archive,
        custom_context=True,
        dockerfile=recipe,
        tag=name,
        buildargs=arguments,
        nocache=not cached,
        rm=True,
        forcerm=True,
        decode=True,
    )
    said: list[str] = []
    for line in lines:
        heard = [part for part in line.get("stream", "").splitlines() if part.strip()]
        said += heard
        for step in heard:
            if step.startswith("Step ") and " : RUN " in step:
                tell(f"  {step[:STEP_WIDTH]}")
        if "error" in line:
            raise _failed(name, said, line)


@contextlib.contextmanager
def _replacing(engine: Engine, name: str) -> Iterator[None]:
    """Afterwards remove what a build took the place of: the image of this name, and the stage that compiled."""
    images, stages = _created(engine, {"reference": name}), _created(engine, _STAGES)
    yield
    _remove(engine, images.keys() - _created(engine, {"reference": name}).keys())
    if _created(engine, _STAGES).keys() - stages.keys():
        # A younger one may be in use by a build of somebody else's at this moment.
        _remove(engine, {one for one, created_at in stages.items() if created_at < time.time() - STAGE_AGE_S})


def _created(engine: Engine, filters: Mapping[str, Any]) -> dict[str, float]:
    """Images by id, and when each was made (Unix time)."""
    return {one["Id"]: float(one["Created"]) for one in engine.client.api.images(filters=dict(filters))}


def _remove(engine: Engine, ids: Iterable[str]) -> None:
    for one in ids:
        # A container may still use it; then it stays, without a name.
        with contextlib.suppress(LabError), engine_errors("removing an old image"):
            engine.client.images.remove(one)


def _failed(name: str, said: list[str], line: Mapping[str, Any]) -> EnvironmentNotReady:
    tail = "\n".join(f"  {one}" for one in said[-LAST_LINES:])
    return EnvironmentNotReady(
        f"The build of {name} failed: {str(line['error']).strip()}. Its last words were:\n{tail}",
        fix="mend what they name; a proxy or a mirror is taken from HTTP_PROXY and pip's configuration, a company's "
        "certificate authority from PIP_CERT",
    )


def _make_base(archive: Path) -> None:
    command = [sys.executable, str(image.recipe_root() / "containers/base/make_base.py"), str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        tail = "\n".join(f"  {one}" for one in words[-LAST_LINES:])
        raise EnvironmentNotReady(
            f"{image.BASE} is neither here nor to be had from a registry, and could not be made:\n{tail}",
            fix="run lab image build as root, with debootstrap installed (apt-get install debootstrap)",
        )
