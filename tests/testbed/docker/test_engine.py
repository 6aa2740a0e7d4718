import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docker.errors import APIError, ContainerError, DockerException, ImageNotFound
from requests.exceptions import ConnectionError as RequestsConnectionError
from testcontainers.core.config import testcontainers_config
from testcontainers.core.exceptions import ContainerStartException
from urllib3.exceptions import ProtocolError

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.testbed.docker import engine as engines
from lab.testbed.docker.engine import Engine, connect, engine_errors

HERE = {"OperatingSystem": "Debian", "KernelVersion": os.uname().release, "Name": os.uname().nodename}


def made_up(address: str = "unix:///x.sock", **info: object) -> Engine:
    return Engine(None, address, "28.0.0", (1, 48), {**HERE, **info})


def listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def answering(path: Path, answer: bytes) -> socket.socket:
    """A server on a Unix socket that says the same to everybody."""
    listener = listening(path)

    def serve() -> None:
        while True:
            try:
                guest, _ = listener.accept()
            except OSError:
                return
            with guest:
                if guest.recv(1 << 16):
                    guest.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return listener


def test_the_engine_of_this_machine_says_what_it_is(engine: Engine) -> None:
    engine.require_local()

    assert engine.is_here
    assert engine.api_version >= (1, 41)
    assert engine.socket_path.is_socket()


def test_one_engine_serves_many_threads_at_once(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    def ask(number: int) -> int:
        return len(engine.client.api.containers(all=True, filters={"label": f"no-such-label={number}"}))

    with ThreadPoolExecutor(16) as workers:
        assert sum(workers.map(ask, range(100))) == 0
    # The pool of connections says so where it throws one away.
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("address", "said", "fix"),
    [
        ("unix:///no/such.sock", "does not exist", "apt-get install docker.io"),
        ("tcp://127.0.0.1:9", "refused", "DOCKER_HOST"),
        ("nonsense", "nonsense", "DOCKER_HOST"),
    ],
)
def test_without_an_engine_the_fix_is_told(monkeypatch: pytest.MonkeyPatch, address: str, said: str, fix: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)

    with pytest.raises(EnvironmentNotReady, match=said) as caught:
        connect()
    assert fix in str(caught.value.fix)


def test_a_socket_that_nobody_listens_on_is_an_ended_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

    with pytest.raises(EnvironmentNotReady, match="ended one's") as caught:
        connect()
    assert caught.value.fix == "sudo systemctl start docker"


def test_an_engine_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "mute.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        with pytest.raises(EnvironmentNotReady, match="does not answer"):
            connect(timeout_s=0.2)


def test_a_process_asks_an_engine_once_what_it_is_until_it_is_started_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.setattr(engines, "connect", made_up)
    monkeypatch.setattr(engines, "_shared", {})

    with listening(path):
        first = engines.shared()
        assert engines.shared() is first
    with pytest.raises(EnvironmentNotReady, match="ended one's"):
        engines.shared()
    # Beside the old one, so that the file system does not give it the same number again.
    with listening(tmp_path / "new.sock"):
        (tmp_path / "new.sock").rename(path)
        assert engines.shared() is not first


def test_a_fork_has_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_shared", {("unix:///x.sock", None): made_up()})

    child = os.fork()
    if child == 0:
        os._exit(len(engines._shared))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(engines._shared) == 1


def test_a_socket_that_may_not_be_opened_names_the_group() -> None:
    error = engines._unreachable("unix:///var/run/docker.sock", PermissionError(13, "denied"))

    assert isinstance(error, EnvironmentNotReady)
    assert str(error.fix).startswith("sudo usermod -aG docker")


@pytest.mark.parametrize(("version", "said"), [("1.20", "below the oldest"), ("1.40", "speaks API 1.40")])
def test_an_engine_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, said: str
) -> None:
    body = f'{{"ApiVersion": "{version}", "Version": "19.3"}}'.encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/old.sock")

    with answering(tmp_path / "old.sock", head.encode() + body), pytest.raises(Unsupported, match=said) as caught:
        connect()
    assert caught.value.fix == "install Docker 20.10 or newer"


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (made_up("tcp://192.0.2.1:2375"), "192.0.2.1"),
        (made_up("ssh://user@host.example"), "host.example"),
        (made_up(OperatingSystem="Docker Desktop"), "virtual machine"),
        (made_up(KernelVersion="5.10.0-linuxkit"), "5.10.0-linuxkit"),
    ],
)
def test_an_engine_on_another_kernel_is_unsupported(engine: Engine, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        engine.require_local()
    assert not engine.is_here


def test_an_engine_that_maps_user_ids_is_unsupported() -> None:
    with pytest.raises(Unsupported, match=r"userns-remap.*Fix: use an engine without"):
        made_up(SecurityOptions=["name=seccomp,profile=builtin", "name=userns"]).require_local()


def test_an_engine_of_another_machine_with_the_same_kernel_is_not_here() -> None:
    assert made_up().is_here
    assert not made_up(Name="another").is_here


def refusal(message: str) -> APIError:
    return APIError("500 Server Error", explanation=message)


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (ImageNotFound("404", explanation="No such image: nginx:1"), EnvironmentNotReady, "docker pull nginx:1"),
        (refusal("Bind for 127.0.0.1:1 failed: port is already allocated"), EnvironmentNotReady, "port"),
        (RequestsConnectionError(ProtocolError("x", ConnectionResetError(104, "reset"))), InvalidRun, "starting it"),
        (ProtocolError("x", ConnectionResetError(104, "reset")), InvalidRun, "ConnectionResetError"),
        (ContainerError(None, 3, "x", "y", b"no such thing\n"), InvalidRun, "ended with 3 while starting it: no such"),
        (ContainerStartException("too slow"), InvalidRun, "too slow"),
        (DockerException("odd"), EnvironmentNotReady, "odd"),
    ],
)
def test_errors_of_the_libraries_become_the_labs(raised: Exception, kind: type[LabError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught, engine_errors("starting it"):
        raise raised
    assert caught.value.__cause__ is raised


@pytest.mark.parametrize("raised", [UsageError("mine"), ValueError("a defect"), KeyboardInterrupt()])
def test_other_errors_pass_as_they_are(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught, engine_errors("starting it"):
        raise raised
    assert caught.value is raised


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESTCONTAINERS_RYUK_DISABLED", raising=False)
    monkeypatch.setattr(testcontainers_config, "_ryuk_disabled", None)
    monkeypatch.setattr(testcontainers_config, "tc_properties", {})


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("present", [True, False])
def test_testcontainers_reaper_is_used_where_its_image_is(monkeypatch: pytest.MonkeyPatch, present: bool) -> None:
    monkeypatch.setattr(
        engines, "has_image", lambda _engine, name: present and name == testcontainers_config.ryuk_image
    )

    assert engines.arrange_ryuk(made_up()) is present
    assert testcontainers_config.ryuk_disabled is not present


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("wish", ["true", "false"])
def test_what_the_user_said_about_testcontainers_reaper_stays(monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", wish)
    monkeypatch.setattr(engines, "has_image", lambda _engine, _name: wish == "true")

    assert engines.arrange_ryuk(made_up()) is (wish == "false")


def test_an_image_that_is_not_there_is_not_pulled(engine: Engine) -> None:
    assert not engines.has_image(engine, "blackhole-lab/no-such-image:1")
