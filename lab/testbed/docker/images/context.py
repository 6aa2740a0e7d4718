"""What a build of the images is given: the code, the Dockerfiles, and this machine's settings for pip.

The settings go into the context, because that works with every builder and through the engine's socket alone.
BuildKit's secrets would need the ``docker`` command with its buildx plug-in, which many machines lack. Only the stage
that compiles copies them, and nothing of that stage but the finished environment reaches the image.
"""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.testbed.docker.images.image import FILES, code_files, package_root, recipe_root

SETTINGS = "containers/settings"

CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
"""Environment variables that name a bundle of certificate authorities; the first that is set counts."""

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FTP_PROXY", "ALL_PROXY")
"""Every builder takes these as arguments without a declaration, and keeps them out of the image's history."""

PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "timeout", "retries")
"""What of pip's configuration means the same inside a container."""


def pack(settings: Mapping[str, bytes]) -> bytes:
    """The context as a tar archive.

    Args:
        settings: Files for ``containers/settings``, by name.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in [*_files(), *((f"{SETTINGS}/{name}", content) for name, content in settings.items())]:
            # The same owner, mode and time always: whatever differs here would make the builder's cache worthless.
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def machine_settings(environment: Mapping[str, str] = os.environ) -> dict[str, bytes]:
    """The certificate authorities and the pip configuration that this machine uses."""
    found = {}
    bundle = next((environment[name] for name in CA_VARIABLES if environment.get(name)), None)
    if bundle and Path(bundle).is_file():
        found["ca-bundle.pem"] = Path(bundle).read_bytes()
    configuration = pip_configuration(_pip_config_list())
    if configuration:
        found["pip.conf"] = configuration.encode()
    return found


def pip_configuration(listed: str) -> str:
    """A pip.conf with what is portable of ``pip config list``; empty where nothing is.

    Args:
        listed: Lines as ``global.index-url='https://mirror.example/simple'``; later ones win.
    """
    chosen: dict[str, str] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        # Folders of this machine do not exist in there.
        words = [word for word in value.strip("'\"").replace("\\n", " ").split() if not word.startswith(("/", "file:"))]
        if name in PIP_SETTINGS and words:
            chosen["timeout" if name == "default-timeout" else name] = " ".join(words)
    return "".join(["[global]\n", *(f"{name} = {value}\n" for name, value in chosen.items())]) if chosen else ""


def proxies(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Build arguments with the proxies that this machine uses."""
    names = (*PROXY_VARIABLES, *(name.lower() for name in PROXY_VARIABLES))
    return {name: environment[name] for name in names if environment.get(name)}


def _files() -> Iterator[tuple[str, bytes]]:
    for path in code_files():
        yield f"lab/{path}", (package_root() / path).read_bytes()
    for name in (*FILES, f"{SETTINGS}/README.md"):
        yield name, (recipe_root() / name).read_bytes()


def _pip_config_list() -> str:
    """What pip itself says of its files and its environment; empty where there is no pip."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else ""
