"""What the built images hold, and what they do not."""

import io
import os
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lab
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.images.context import CA_VARIABLES
from lab.testbed.docker.images.image import fingerprint

IMAGES = ("lab", "demo-client", "demo-server")

TIMEOUT_S = 20.0

UNWANTED = ("gcc", "cc", "as", "ld", "cpp", "make", "pip", "pip3")


def run(engine: Engine, image: str, *command: str, entrypoint: str | None = None) -> str:
    """What a container without network and capabilities prints; the container is gone afterwards."""
    output: bytes = engine.client.containers.run(
        image, list(command), entrypoint=entrypoint, remove=True, network_mode="none", cap_drop=["ALL"], stderr=True
    )
    return output.decode()


def files(engine: Engine, image: str) -> Iterator[tuple[str, bytes]]:
    """Every file of every layer, hidden ones as well, and the image's own description with its history."""
    saved = io.BytesIO(b"".join(engine.client.images.get(image).save()))
    with tarfile.open(fileobj=saved) as outer:
        for name, data in _read(outer):
            try:
                with tarfile.open(fileobj=io.BytesIO(data)) as layer:
                    yield from _read(layer)
            except tarfile.ReadError:
                yield name, data


def _read(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for entry in archive:
        if entry.isfile():
            content = archive.extractfile(entry)
            assert content is not None
            yield entry.name, content.read()


def certificates(text: str) -> set[str]:
    """Certificates of a bundle: a line from the midst of each, without its line end."""
    found = re.findall(r"-----BEGIN CERTIFICATE-----\s(.+?)\s-----END CERTIFICATE-----", text, re.DOTALL)
    return {one.split()[len(one.split()) // 2] for one in found}


def settings(engine: Engine, image: str) -> dict[str, object]:
    """The configuration that containers of an image start with."""
    found: dict[str, object] = engine.client.images.get(image).attrs["Config"]
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_there_is_no_compiler_and_no_installer_in_it(engine: Engine, images: dict[str, str], name: str) -> None:
    script = f"for tool in python3 {' '.join(UNWANTED)}; do command -v $tool; done; python3 -c 'import pip'"

    found = run(engine, images[name], "-c", f"({script}) 2>&1 || true", entrypoint="sh").splitlines()

    assert found[0] == "/usr/bin/python3"
    assert found[1:] == [
        "Traceback (most recent call last):",
        *found[2:-1],
        "ModuleNotFoundError: No module named 'pip'",
    ]
    assert len(found) == 4


def test_the_lab_s_image_holds_nothing_that_its_containers_do_not_run(engine: Engine, images: dict[str, str]) -> None:
    wanted = ["lab.core", "pip", "matplotlib", "pytest", "rich", "typer", "lab.run", "lab.cli"]
    script = f"import importlib.util as u; print([one for one in {wanted!r} if u.find_spec(one)])"

    assert run(engine, images["lab"], "-c", script, entrypoint="/opt/lab/bin/python").strip() == "['lab.core']"


def test_every_module_of_the_lab_in_there_can_be_imported(engine: Engine, images: dict[str, str]) -> None:
    # google-genai is for whoever tests with it: its adapter is imported where it is.
    script = (
        "import importlib, pkgutil, lab\n"
        "names = [one.name for one in pkgutil.walk_packages(lab.__path__, 'lab.')]\n"
        "ends = ('__main__', 'genai', 'genai_messages')\n"
        "[importlib.import_module(name) for name in names if not name.endswith(ends)]\n"
        "print(len(names))"
    )

    assert int(run(engine, images["lab"], "-c", script, entrypoint="/opt/lab/bin/python")) > 50


def test_its_modules_are_compiled_and_the_compiled_ones_are_believed(engine: Engine, images: dict[str, str]) -> None:
    script = (
        "import importlib.util, pathlib, lab.core.flow as one\n"
        "head = pathlib.Path(importlib.util.cache_from_source(one.__file__)).read_bytes()[:8]\n"
        # PEP 552: bit 0 says that the file goes by a hash, bit 1 that the source is to be asked.
        "print(int.from_bytes(head[4:], 'little'))"
    )

    assert run(engine, images["lab"], "-c", script, entrypoint="/opt/lab/bin/python").strip() == "1"


@pytest.mark.parametrize("name", IMAGES)
def test_nothing_of_this_machine_s_settings_is_kept(engine: Engine, images: dict[str, str], name: str) -> None:
    bundle = next((os.environ[one] for one in CA_VARIABLES if os.environ.get(one)), None)
    own = certificates(Path(bundle).read_text(encoding="utf-8")) if bundle else set()
    held = list(files(engine, images[name]))
    # What the library certifi brings for everyone is none of this machine's.
    public = [certificates(data.decode()) for path, data in held if path.endswith("certifi/cacert.pem")]
    wanted = re.compile(b"|".join(re.escape(one.encode()) for one in own.difference(*public)) or b"(?!)")
    environment = settings(engine, images[name])["Env"]

    assert [path for path, _ in held if Path(path).name in {"ca-bundle.pem", "ca-certificates.crt", "pip.conf"}] == []
    assert [path for path, data in held if b"CERTIFICATE" in data and wanted.search(data)] == []
    assert not re.search("CERT|BUNDLE|PROXY|INDEX|PIP_", str(environment), re.IGNORECASE)


@pytest.mark.parametrize("name", IMAGES)
def test_labels_say_what_it_is_and_of_which_code(engine: Engine, images: dict[str, str], name: str) -> None:
    found = settings(engine, images[name])["Labels"]
    assert isinstance(found, dict)

    assert found["org.opencontainers.image.version"] == lab.__version__
    assert found["org.opencontainers.image.licenses"] == "MIT"
    assert found["dev.blackhole-lab.image"] == name
    assert found["dev.blackhole-lab.source"] == fingerprint()
    # Containers inherit an image's labels, and this one marks what a process of the lab made.
    assert "dev.blackhole-lab" not in found


def test_the_lab_s_image_runs_a_module_and_without_one_says_which(engine: Engine, images: dict[str, str]) -> None:
    assert settings(engine, images["lab"])["Entrypoint"] == ["/opt/lab/bin/python", "-m"]
    assert "lab.control.serve" in run(engine, images["lab"])
    assert "usage: python -m lab.programs.client" in run(engine, images["lab"], "lab.programs.client", "--help")


@pytest.mark.parametrize("name", ["demo-client", "demo-server"])
def test_the_demo_images_are_not_root_s(engine: Engine, images: dict[str, str], name: str) -> None:
    script = (
        "import os; print(os.getuid(), os.getgid(), 'CapEff:\\t0000000000000000' in open('/proc/self/status').read())"
    )

    assert run(engine, images[name], "-c", script, entrypoint="python3").split() == ["10001", "10001", "True"]
    assert settings(engine, images[name])["Healthcheck"]


def test_the_demo_server_and_client_talk_and_know_that_they_are_well(engine: Engine, images: dict[str, str]) -> None:
    server = engine.client.containers.run(images["demo-server"], detach=True, network_mode="none", cap_drop=["ALL"])
    client = None
    try:
        client = engine.client.containers.run(
            images["demo-client"], ["127.0.0.1", "5000"], detach=True, network_mode=f"container:{server.id}"
        )
        _await(lambda: b'"received"' in client.logs(), "an echo in the client's output")
        for container, state in ((server, "listening"), (client, "established")):
            code, _ = container.exec_run(["python3", "-m", "lab.programs.health", state, "5000"])
            assert code == 0
        client.stop(timeout=20)
        client.reload()
        # Ended by itself at once; 137 is the engine's SIGKILL.
        assert client.attrs["State"]["ExitCode"] == 0
        code, _ = server.exec_run(["python3", "-m", "lab.programs.health", "established", "5000"])
        assert code == 1
    finally:
        for container in filter(None, (client, server)):
            container.remove(force=True)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {TIMEOUT_S:g} s for {what}"
        time.sleep(0.05)
