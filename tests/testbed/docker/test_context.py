"""What a build is given: the code, the recipes, and of this machine's settings what means the same in there."""

import io
import tarfile
from pathlib import Path

import pytest

from lab.testbed.docker.images import context, image

DOCKERIGNORE = image.package_root().parent / ".dockerignore"


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.getnames()


def test_it_holds_the_code_that_runs_in_containers_and_no_other() -> None:
    found = names(context.pack({}))

    assert {"lab/__init__.py", "lab/core/flow.py", "lab/testbed/docker/inner/inside.py", "lab/programs/client.py"} <= {
        *found
    }
    assert {"lab/live/client/program.py", "lab/live/voice/clips/book.wav", "lab/live/voice/grammar.jsgf"} <= {*found}
    assert [
        one
        for one in found
        if one.startswith(("lab/cli", "lab/run", "lab/report", "lab/study", "lab/experiments", "tests"))
    ] == []
    assert [one for one in found if "__pycache__" in one] == []


def test_a_build_by_hand_gets_the_same() -> None:
    allowed = [line[1:] for line in DOCKERIGNORE.read_text(encoding="utf-8").splitlines() if line.startswith("!")]

    found = {one for one in names(context.pack({})) if not one.endswith("Dockerfile")}

    assert [one for one in found if not one.startswith(tuple(allowed))] == []
    assert [one for one in allowed if not any(name.startswith(one) for name in found)] == []


def test_the_same_code_gives_the_same_octets_so_that_cached_steps_count() -> None:
    assert context.pack({"pip.conf": b"x"}) == context.pack({"pip.conf": b"x"})


def test_settings_are_files_beside_their_explanation() -> None:
    found = names(context.pack({"ca-bundle.pem": b"x", "pip.conf": b"y"}))

    assert [one for one in found if one.startswith(context.SETTINGS)] == [
        "containers/settings/README.md",
        "containers/settings/ca-bundle.pem",
        "containers/settings/pip.conf",
    ]


def test_pip_s_own_bundle_counts_before_the_others(tmp_path: Path) -> None:
    pip, requests = tmp_path / "pip.pem", tmp_path / "requests.pem"
    pip.write_bytes(b"pip")
    requests.write_bytes(b"requests")

    found = context.machine_settings({"PIP_CERT": str(pip), "REQUESTS_CA_BUNDLE": str(requests)})

    assert found["ca-bundle.pem"] == b"pip"


@pytest.mark.parametrize("environment", [{}, {"PIP_CERT": ""}, {"PIP_CERT": "/nowhere/ca.pem"}])
def test_no_bundle_is_no_file(environment: dict[str, str]) -> None:
    assert "ca-bundle.pem" not in context.machine_settings(environment)


def test_of_pip_s_configuration_goes_along_what_means_the_same_in_there() -> None:
    listed = (
        "global.cert='/etc/ssl/company.pem'\n"
        "global.index-url='https://mirror.example/simple'\n"
        "global.extra-index-url='file:///opt/index https://more.example/simple'\n"
        "global.find-links='/opt/wheels'\n"
        "install.user='true'\n"
        ":env:.default-timeout='60'\n"
    )

    assert context.pip_configuration(listed) == (
        "[global]\n"
        "index-url = https://mirror.example/simple\n"
        "extra-index-url = https://more.example/simple\n"
        "timeout = 60\n"
    )


def test_the_environment_counts_before_pip_s_files() -> None:
    listed = "global.index-url='https://file.example/simple'\n:env:.index-url='https://variable.example/simple'\n"

    assert context.pip_configuration(listed) == "[global]\nindex-url = https://variable.example/simple\n"


@pytest.mark.parametrize("listed", ["", "global.find-links='/opt/wheels'\n", "WARNING: something\n"])
def test_nothing_portable_is_no_file(listed: str) -> None:
    assert context.pip_configuration(listed) == ""


def test_proxies_go_along_in_both_spellings() -> None:
    environment = {
        "HTTP_PROXY": "http://proxy.example:3128",
        "no_proxy": "localhost",
        "HTTPS_PROXY": "",
        "HOME": "/root",
    }

    assert context.proxies(environment) == {"HTTP_PROXY": "http://proxy.example:3128", "no_proxy": "localhost"}
