"""Names of images, and whether the one that is there is the right one."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

import lab
from lab.core.errors import EnvironmentNotReady
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.images import image


@dataclass
class Images:
    """An engine's images, by name, with their labels."""

    held: dict[str, dict[str, str]] = field(default_factory=dict)

    def inspect_image(self, name: str) -> object:
        from docker.errors import ImageNotFound

        if name not in self.held:
            raise ImageNotFound("no such image")
        return {"Config": {"Labels": self.held[name] or None}}


def engine_with(held: dict[str, dict[str, str]]) -> Engine:
    images = Images(held)
    return Engine(SimpleNamespace(api=images), "unix:///nowhere", "20.10.0", (1, 41), {})


def test_the_image_of_this_code_is_named() -> None:
    engine = engine_with({image.lab_image(): {image.SOURCE_LABEL: image.fingerprint()}})

    assert image.require_image(engine) == f"blackhole-lab/lab:{lab.__version__}-{image.fingerprint()}"
    assert image.is_built(engine)


def test_a_missing_image_names_its_fix() -> None:
    with pytest.raises(EnvironmentNotReady, match=r"is not on this engine\. Fix: lab image build"):
        image.require_image(engine_with({}))
    assert not image.is_built(engine_with({}))


@pytest.mark.parametrize("labels", [{}, {image.SOURCE_LABEL: ""}, {image.SOURCE_LABEL: "0123456789abcdef"}])
def test_an_image_of_other_code_is_refused(labels: dict[str, str]) -> None:
    engine = engine_with({image.lab_image(): labels})

    with pytest.raises(EnvironmentNotReady, match=r"from other code than this lab's\. Fix: lab image build"):
        image.require_image(engine)
    assert not image.is_built(engine)


def test_another_name_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_IMAGE", "mine:1")

    assert image.lab_image() == "mine:1"


def test_the_fingerprint_changes_with_a_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    before = image.fingerprint()
    for name in image.FILES:
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((image.recipe_root() / name).read_bytes())
    monkeypatch.setattr(image, "recipe_root", lambda: tmp_path)

    assert image.fingerprint() == before
    (tmp_path / image.FILES[0]).write_text("FROM scratch\n", encoding="utf-8")
    assert image.fingerprint() != before
