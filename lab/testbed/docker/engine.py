"""The Docker engine, as the lab uses it: found, asked whether it will do, its errors turned into the lab's.

::

    with connect() as engine, engine_errors("starting the router"):
        engine.require_local()
        engine.client.containers.create(...)

One engine may be shared by threads: each request takes a connection of its own from the client's pool.
"""

import atexit
import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported
from lab.testbed.docker import refusals

if TYPE_CHECKING:
    from docker import DockerClient

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"

OLDEST_API = (1, 41)
"""Docker 20.10, December 2020."""

TIMEOUT_S = 60.0
"""For one answer of the engine."""

_UNIX = "unix://"
_POOL = 32
"""Connections that are kept; with more threads at once, the others' are closed after each request."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine that has answered; close it, or use it as a context manager."""

    client: "DockerClient"

    address: str
    """As DOCKER_HOST has it."""

    version: str
    """20.10.24, say."""

    api_version: tuple[int, int]
    """Version of its API that is spoken: at most its own."""

    info: Mapping[str, Any] = field(repr=False)
    """What ``docker info`` shows."""

    @property
    def api(self) -> str:
        """Version of its API that is spoken, as ``1.41``."""
        return ".".join(map(str, self.api_version))

    @property
    def socket_path(self) -> Path:
        """Its Unix socket.

        Raises:
            Unsupported: it has another kind of address.
        """
        if not self.address.startswith(_UNIX):
            raise _not_local(f"it is at {self.address}")
        return Path(self.address.removeprefix(_UNIX))

    @property
    def is_rootless(self) -> bool:
        """Whether it runs in a user namespace of an ordinary user."""
        return any("rootless" in option for option in self.info.get("SecurityOptions") or ())

    @property
    def is_here(self) -> bool:
        """Whether all says that it runs on this machine: kernel, host name, a Unix socket."""
        with contextlib.suppress(Unsupported):
            self.require_local()
            return bool(self.info.get("Name") == os.uname().nodename)
        return False

    def require_local(self) -> None:
        """See that it runs on the caller's own kernel, with the caller's user ids; two kernels' clocks do not compare.

        Raises:
            Unsupported: it does not, with the reason.
        """
        if not self.address.startswith(_UNIX):
            raise _not_local(f"it is at {self.address}")
        system, kernel = self.info.get("OperatingSystem", ""), self.info.get("KernelVersion", "")
        if "Docker Desktop" in system:
            raise _not_local("Docker Desktop runs it in a virtual machine")
        if kernel != os.uname().release:
            raise _not_local(f"it runs on {system or 'another system'} with kernel {kernel or 'unknown'}")
        if any(option.startswith("name=userns") for option in self.info.get("SecurityOptions") or ()):
            raise Unsupported(
                "The Docker engine maps user ids (userns-remap): root in a container may not reach the lab's sockets.",
                fix="use an engine without userns-remap (dockerd --userns-remap, /etc/docker/daemon.json)",
            )

    def close(self) -> None:
        """Close its connections."""
        self.client.close()

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()


def connect(timeout_s: float = TIMEOUT_S) -> Engine:
    """The engine that Testcontainers uses too: its properties, DOCKER_HOST, the current context, else the default.

    Raises:
        EnvironmentNotReady: none answers here.
        Unsupported: it is too old.
    """
    import docker
    from docker.errors import DockerException, InvalidVersion

    place = address()
    _require_listener(place)
    try:
        client = docker.DockerClient(base_url=place, timeout=timeout_s, max_pool_size=_POOL)
    except InvalidVersion as error:
        raise _too_old("its API is below the oldest that the Docker SDK speaks") from error
    except (DockerException, OSError, ValueError) as error:
        raise _unreachable(place, error) from error
    if place.startswith("unix:"):
        # No proxy leads to a socket; and who looks for one reads the environment, which another thread may be changing.
        client.api.trust_env = False
    try:
        return _greet(client, place)
    except BaseException:
        client.close()
        raise


def shared() -> Engine:
    """The same engine for all of this process, asked only once what it is; not to be closed.

    Raises:
        EnvironmentNotReady: none answers here.
        Unsupported: it is too old.
    """
    place = address()
    _require_listener(place)
    with _lock:
        key = place, _incarnation(place)
        if key not in _shared:
            _shared[key] = connect()
        return _shared[key]


def address() -> str:
    """Where the engine is, as DOCKER_HOST has it; asks nobody."""
    from testcontainers.core.docker_client import get_docker_host

    return get_docker_host() or DEFAULT_ADDRESS


@contextlib.contextmanager
def engine_errors(doing: str = "using it") -> Iterator[None]:
    """Turn errors of the Docker SDK and of Testcontainers into the lab's.

    Args:
        doing: What is done meanwhile, as "starting the router": for the message where the engine goes away.
    """
    try:
        yield
    except Exception as error:
        explained = explain(error, doing)
        if explained is error:
            raise
        raise explained from error


def explain(error: Exception, doing: str) -> Exception:
    """The lab's error for one of the Docker SDK or of Testcontainers; any other one as it is."""
    from docker.errors import APIError, ContainerError, DockerException
    from requests.exceptions import RequestException
    from testcontainers.core.exceptions import ContainerConnectException, ContainerStartException

    if isinstance(error, LabError):
        return error
    if isinstance(error, APIError):
        # Some are raised without an answer of the engine.
        return refusals.explain(error.explanation or str(error))
    if isinstance(error, ContainerError):
        return InvalidRun(f"A container ended with {error.exit_status} while {doing}: {_text(error.stderr)}")
    if isinstance(error, RequestException):
        return refusals.lost(f"{doing} got no answer ({type(_root(error)).__name__})")
    if isinstance(error, ContainerStartException | ContainerConnectException):
        return InvalidRun(f"A container did not come up while {doing}: {error}")
    if isinstance(error, DockerException):
        return EnvironmentNotReady(f"The Docker SDK gave up while {doing}: {error}")
    if _is_lost(error):
        return refusals.lost(f"{doing} got no answer ({type(_root(error)).__name__})")
    return error


def arrange_ryuk(engine: Engine) -> bool:
    """Let Testcontainers start its own reaper only where its image is there already; whether it will.

    Otherwise Testcontainers would try to pull it, and fail where no registry can be reached. What the user has said
    (TESTCONTAINERS_RYUK_DISABLED, or the properties file) stays.
    """
    from testcontainers.core.config import testcontainers_config as config

    said = "TESTCONTAINERS_RYUK_DISABLED" in os.environ or "ryuk.disabled" in config.tc_properties
    if not said and not config.ryuk_disabled and not has_image(engine, config.ryuk_image):
        config.ryuk_disabled = True
    return not config.ryuk_disabled


def has_image(engine: Engine, name: str) -> bool:
    """Whether an image is there without pulling it."""
    from docker.errors import ImageNotFound

    try:
        engine.client.api.inspect_image(name)
    except ImageNotFound:
        return False
    return True


def require_image(engine: Engine, name: str | None) -> None:
    """See that an image of the user's is there, None for none.

    Raises:
        EnvironmentNotReady: it is not.
    """
    if name is not None:
        with engine_errors(f"looking for the image {name}"):
            if not has_image(engine, name):
                raise refusals.missing_image(name)


_lock = threading.Lock()
_shared: dict[tuple[str, object], Engine] = {}


def _incarnation(place: str) -> object:
    """Something else after the engine was started anew: it may be another version."""
    if not place.startswith(_UNIX):
        return None
    status = Path(place.removeprefix(_UNIX)).stat()
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _close_shared() -> None:
    for engine in _shared.values():
        engine.close()
    _shared.clear()


def _forget_shared() -> None:
    global _lock
    # The connections are the parent's.
    _lock = threading.Lock()
    _shared.clear()


atexit.register(_close_shared)
os.register_at_fork(after_in_child=_forget_shared)


def _greet(client: "DockerClient", place: str) -> Engine:
    with engine_errors("being asked what it is"):
        version, info = client.version(), client.info()
    api = _pair(client.api.api_version)
    if api < OLDEST_API:
        raise _too_old(f"it is {version.get('Version')} and speaks API {client.api.api_version}")
    return Engine(client, place, str(version.get("Version", "unknown")), api, info)


def _require_listener(place: str) -> None:
    """See that something listens on a Unix socket; the SDK would leave its own socket open where nothing does."""
    if not place.startswith(_UNIX):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMEOUT_S)
        try:
            probe.connect(place.removeprefix(_UNIX))
        except OSError as error:
            raise _unreachable(place, error) from error


def _pair(version: str) -> tuple[int, int]:
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return major, minor


def _too_old(why: str) -> Unsupported:
    return Unsupported(f"The Docker engine is too old: {why}.", fix="install Docker 20.10 or newer")


def _not_local(why: str) -> Unsupported:
    return Unsupported(
        f"The Docker engine does not run on this machine's own kernel: {why}. Instants of two kernels do not compare.",
        fix="run the lab on the engine's own Linux machine, or without --backend docker",
    )


def _unreachable(place: str, error: Exception) -> LabError:
    """Why no engine answered, from the error at the bottom."""
    path, root = place.removeprefix(_UNIX), _root(error)
    if not place.startswith(_UNIX):
        return EnvironmentNotReady(f"No Docker engine answers at {place}: {root}.", fix="unset DOCKER_HOST, or mend it")
    if isinstance(root, FileNotFoundError):
        fix = "sudo apt-get install docker.io, or set DOCKER_HOST"
        return EnvironmentNotReady(f"There is no Docker engine: {path} does not exist.", fix=fix)
    if isinstance(root, PermissionError):
        fix = "sudo usermod -aG docker $USER, then log in again"
        return EnvironmentNotReady(f"This user may not open the Docker engine's socket {path}.", fix=fix)
    if isinstance(root, ConnectionRefusedError):
        fix = "sudo systemctl start docker"
        return EnvironmentNotReady(f"No Docker engine listens on {path}; the socket is an ended one's.", fix=fix)
    if isinstance(root, TimeoutError):
        fix = "sudo systemctl restart docker"
        return EnvironmentNotReady(f"The Docker engine at {path} does not answer.", fix=fix)
    return EnvironmentNotReady(f"No Docker engine answers at {path}: {root}.", fix="sudo systemctl restart docker")


def _is_lost(error: BaseException) -> bool:
    """Whether it is the HTTP library's for a connection that broke: the SDK lets these through from streams."""
    from urllib3.exceptions import HTTPError

    return isinstance(error, HTTPError)


def _root(error: BaseException) -> BaseException:
    """The system's error at the bottom of what the HTTP library wrapped around it, else the error itself."""
    return next((one for one in _beneath(error) if _is_systems(one)), error)


def _is_systems(error: BaseException) -> bool:
    return isinstance(error, OSError) and type(error).__module__ == "builtins"


def _beneath(error: BaseException, depth: int = 8) -> Iterator[BaseException]:
    yield error
    if depth:
        inner = (*error.args, getattr(error, "reason", None), error.__cause__, error.__context__)
        for one in inner:
            if isinstance(one, BaseException):
                yield from _beneath(one, depth - 1)


def _text(output: bytes | str | None) -> str:
    words = output.decode("utf-8", "replace") if isinstance(output, bytes) else output or "it said nothing"
    return words.strip()
