"""Which testbed a run gets: the embedded one, containers, or what this machine can do."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from lab.core.errors import EnvironmentNotReady, Unsupported, UsageError
from lab.run.runner import Opener
from lab.testbed.ports import Testbed, TestbedSpec

BACKENDS = ("auto", "netns", "docker")


@dataclass(frozen=True, slots=True)
class Images:
    """The user's images for the ends, None for the lab's own programs there."""

    client: str | None = None
    server: str | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.client is not None or self.server is not None


def opener(
    backend: str,
    images: Images | None = None,
    tell: Callable[[str], None] = lambda _: None,
    *,
    leads_outside: bool = False,
) -> Opener:
    """What brings up a testbed of this backend.

    Args:
        backend: auto, netns or docker.
        images: The user's; they need containers.
        tell: Hears which backend ``auto`` chose, and why.
        leads_outside: There is an uplink, which only containers have.

    Raises:
        UsageError: there is no such backend, or it has no images.
        EnvironmentNotReady: ``auto``, and neither kind works here; or an image is missing.
    """
    if backend not in BACKENDS:
        meant = difflib.get_close_matches(backend, BACKENDS, 1) or BACKENDS
        raise UsageError(
            f"The backend is one of {', '.join(BACKENDS)}; {backend!r} is none of them.",
            fix=f"--backend {' or '.join(meant)}",
        )
    if images:
        if backend == "netns":
            raise UsageError("The embedded backend has no images.", fix="--backend docker")
        _require_images(images)
        return open_docker(images)
    if leads_outside and backend == "auto":
        tell("backend: docker, since the embedded one has no way out to a server outside")
        return open_docker()
    return open_netns if choose(backend, tell) == "netns" else open_docker()


def name_of(opened: Opener) -> str:
    """Which backend an opener of this module brings up."""
    return "netns" if opened is open_netns else "docker"


def open_netns(spec: TestbedSpec) -> Testbed:
    """A testbed in namespaces."""
    from lab.testbed.netns import open_testbed

    return open_testbed(spec)


def open_docker(images: Images | None = None) -> Opener:
    """Testbeds in containers, with these images."""

    def open_it(spec: TestbedSpec) -> Testbed:
        from lab.testbed import docker

        wanted = images or Images()
        return docker.open_testbed(spec, docker.Images(wanted.client, wanted.server))

    return open_it


def choose(backend: str, tell: Callable[[str], None] = lambda _: None) -> str:
    """Netns or docker: what ``auto`` comes to on this machine.

    Args:
        backend: auto, netns or docker.
        tell: Hears which one ``auto`` chose, and why.

    Raises:
        EnvironmentNotReady: neither kind works here.
    """
    if backend != "auto":
        return backend
    try:
        open_netns(TestbedSpec()).close()
    except EnvironmentNotReady as error:
        _require_engine(error)
        tell(f"backend: docker, since the embedded one does not work here: {error.message}")
        return "docker"
    tell("backend: netns, since this user may make namespaces here")
    return "netns"


def _require_images(images: Images) -> None:
    """See that the user's images are there, before anything is begun.

    Raises:
        EnvironmentNotReady: one is not, or there is no engine.
    """
    from lab.testbed.docker import engine

    with engine.connect() as found:
        for name in (images.client, images.server):
            engine.require_image(found, name)


def _require_engine(embedded: EnvironmentNotReady) -> None:
    """See that containers could be had.

    Raises:
        EnvironmentNotReady: they cannot, with both reasons.
    """
    from lab.testbed.docker import engine
    from lab.testbed.docker.images import image

    try:
        with engine.connect() as found:
            found.require_local()
            image.require_image(found)
    except (EnvironmentNotReady, Unsupported) as containers:
        raise EnvironmentNotReady(
            f"No backend works here. Embedded: {embedded.message} Containers: {containers.message}",
            fix=" or ".join(fix for fix in (embedded.fix, containers.fix) if fix),
        ) from containers
