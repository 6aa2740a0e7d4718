"""The base without a registry: from the mirror that this machine's own apt uses."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lab.testbed.docker.images.image import recipe_root


@pytest.fixture(scope="module")
def make_base() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_base", recipe_root() / "containers/base/make_base.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def configure(folder: Path, **files: str) -> Path:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        path = folder / "sources.list" if name == "main" else folder / "sources.list.d" / name.replace("_", ".")
        path.write_text(text, encoding="utf-8")
    return folder


def sources_list(make_base: ModuleType, folder: Path) -> list[str]:
    _, text = make_base.sources_list(make_base.read_sources(folder))
    lines: list[str] = text.splitlines()
    return lines


def test_stanzas_are_read(make_base: ModuleType, tmp_path: Path) -> None:
    stanzas = (
        "Types: deb deb-src\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\n contrib\n\n"
        "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n"
    )

    assert sources_list(make_base, configure(tmp_path, debian_sources=stanzas)) == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/debian-security bookworm-security main",
    ]


def test_lines_are_read(make_base: ModuleType, tmp_path: Path) -> None:
    lines = (
        "deb-src http://source.example/debian bookworm main\n"
        "# deb http://old.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://mirror.example/debian bookworm main contrib\n"
    )

    assert sources_list(make_base, configure(tmp_path, main=lines))[0] == (
        "deb https://mirror.example/debian bookworm main"
    )


def test_a_mirror_of_another_suite_has_this_one_too(make_base: ModuleType, tmp_path: Path) -> None:
    found = sources_list(make_base, configure(tmp_path, main="deb http://mirror.example/debian/ trixie main\n"))

    assert found[0] == "deb http://mirror.example/debian/ bookworm main"
    # Nothing is known of this machine's way to the security archive, and another address may not be reachable.
    assert len(found) == 2


@pytest.mark.parametrize(
    "foreign",
    [
        "deb http://archive.ubuntu.example/ubuntu noble main\n",
        "deb https://packages.example/apt stable main\n",
        "deb cdrom:[Debian]/ bookworm main\n",
        "deb http://mirror.example/debian bookworm contrib\n",
        "",
    ],
)
def test_where_apt_knows_no_debian_the_mirror_is_debootstraps_own(
    make_base: ModuleType, tmp_path: Path, foreign: str
) -> None:
    assert make_base.sources_list(make_base.read_sources(configure(tmp_path, foreign_list=foreign))) is None


def test_a_source_that_is_switched_off_does_not_count(make_base: ModuleType, tmp_path: Path) -> None:
    stanza = "Enabled: no\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n"

    assert make_base.read_sources(configure(tmp_path, debian_sources=stanza)) == []


def test_emptying_leaves_folders_and_copyrights(make_base: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "bash").mkdir()
    for name in ("bash/copyright", "bash/changelog.gz", "README"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "bash")

    make_base.empty(tmp_path)

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bash", "copyright"]
