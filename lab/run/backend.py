"""Which testbed a run gets: the embedded one, containers, or what this machine can do."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.core.errors import EnvironmentNotReady, LabError, Unsupported, UsageError
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


def opener(backend: str, images: Images | None = None, tell: Callable[[str], None] = lambda _: None) -> Opener:
    """What brings up a testbed of this backend.

    Args:
        backend: auto, netns or docker.
        images: The user's; they need containers.
        tell: Hears which backend ``auto`` chose, and why.

    Raises:
        UsageError: there is no such backend, or it has no images.
    """
    if backend not in BACKENDS:
        raise UsageError(f"The backend is one of {', '.join(BACKENDS)}; {backend!r} is none of them.")
    if images and backend == "netns":
        raise UsageError("The embedded backend has no images.", fix="--backend docker")
    if backend == "netns":
        return open_netns
    if backend == "docker" or images:
        return open_docker(images)
    return _Auto(tell)


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


class _Auto:
    """The embedded testbed where it works, else containers; the choice is made once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._chosen: Opener | None = None

    def __call__(self, spec: TestbedSpec) -> Testbed:
        """A testbed of the chosen kind.

        Raises:
            EnvironmentNotReady: neither kind works here.
        """
        if self._chosen is None and spec.uplink is not None:
            self._chosen = open_docker()
            self._tell("backend: docker, since the embedded one has no way out to a server outside")
        if self._chosen is not None:
            return self._chosen(spec)
        try:
            testbed = open_netns(spec)
        except EnvironmentNotReady as error:
            return self._open_docker(spec, error)
        self._chosen = open_netns
        self._tell("backend: netns, since this user may make namespaces here")
        return testbed

    def _open_docker(self, spec: TestbedSpec, why: EnvironmentNotReady) -> Testbed:
        containers = open_docker()
        try:
            testbed = containers(spec)
        except (EnvironmentNotReady, Unsupported) as error:
            raise _neither(why, error) from error
        self._chosen = containers
        self._tell(f"backend: docker, since the embedded one does not work here: {why.message}")
        return testbed


def _neither(embedded: LabError, containers: LabError) -> EnvironmentNotReady:
    return EnvironmentNotReady(
        f"No backend works here. Embedded: {embedded.message} Containers: {containers.message}",
        fix=" or ".join(fix for fix in (embedded.fix, containers.fix) if fix),
    )
