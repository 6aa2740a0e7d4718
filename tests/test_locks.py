"""The locks fit pyproject.toml and hold versions only."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = {
    "run": PROJECT["dependencies"],
    "dev": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"],
    "image": (ROOT / "requirements/image.in").read_text(encoding="utf-8").splitlines()[1:],
    **{
        path.stem: [path.read_text(encoding="utf-8").strip()]
        for pattern in ("genai-*.in", "livekit-agents-*.in")
        for path in sorted((ROOT / "requirements").glob(pattern))
    },
    "build": tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"],
}


def locked(name: str) -> list[str]:
    """Lines of a lock without comments."""
    lines = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


@pytest.mark.parametrize("name", LOCKS)
def test_every_dependency_is_locked(name: str) -> None:
    wanted = {re.split(r"[<>=!~;\[ ]", dependency)[0].lower() for dependency in LOCKS[name]}

    assert wanted <= {line.split("==")[0] for line in locked(name)}, "run make lock"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_exact_versions_and_no_addresses(name: str) -> None:
    for line in locked(name):
        assert re.fullmatch(r"[a-z0-9._-]+==[0-9][0-9a-z.]*", line)


def test_the_containers_run_on_what_the_lab_runs_on() -> None:
    assert set(locked("image")) <= set(locked("run"))


def test_the_tests_run_on_what_the_lab_runs_on() -> None:
    assert set(locked("run")) <= set(locked("dev"))


@pytest.mark.parametrize("folder", sorted((ROOT / "requirements").glob("js-genai-*")), ids=lambda folder: folder.name)
def test_a_lock_of_npms_fits_its_package_and_holds_no_addresses_to_install_from(folder: Path) -> None:
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]

    asked = wanted["dependencies"] | wanted.get("optionalDependencies", {})
    assert wanted["dependencies"]["@google/genai"] == folder.name.removeprefix("js-genai-")
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert not [name for name, one in packages.items() if "resolved" in one]
