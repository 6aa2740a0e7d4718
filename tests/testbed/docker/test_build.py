"""Building: how a base is come by, and what a failed build says."""

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.images import build, context, image


def engine_of(**parts: Any) -> Engine:
    return Engine(SimpleNamespace(**parts), "unix:///nowhere", "20.10.0", (1, 41), {})


def never(_: str) -> None:
    pytest.fail("there was nothing to tell")


def test_a_base_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "has_image", lambda *_: True)

    assert build.build_base(engine_of(), never) == "present"


def test_a_base_that_a_registry_has_is_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "has_image", lambda *_: False)
    pulled: list[str] = []

    engine = engine_of(images=SimpleNamespace(pull=pulled.append))

    assert build.build_base(engine, never) == "pulled"
    assert pulled == [image.BASE]


def test_a_registry_that_says_nothing_holds_nobody_up() -> None:
    engine = engine_of(images=SimpleNamespace(pull=lambda _: time.sleep(5)))
    began_at = time.monotonic()

    assert not build.pull(engine, "nowhere:1", timeout_s=0.1)
    assert time.monotonic() - began_at < 2


def test_a_base_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "has_image", lambda *_: False)
    monkeypatch.setattr(build, "pull", lambda *_: False)
    # Any program that fails; the real one would need root, debootstrap and half a minute.
    monkeypatch.setattr(sys, "executable", "/bin/ls")
    told: list[str] = []

    with pytest.raises(EnvironmentNotReady, match=r"(?s)could not be made:\n.*base\.tar") as error:
        build.build_base(engine_of(), told.append)

    assert "debootstrap" in str(error.value.fix)
    assert "half a minute" in told[0]


def test_a_failed_build_shows_its_last_words_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [{"stream": f"line {number}\n"} for number in range(40)]
    said = [{"stream": "Step 8/19 : RUN make\n"}, *words, {"error": "exit code 1"}]
    monkeypatch.setattr(context, "machine_settings", dict)
    told: list[str] = []

    engine = engine_of(api=SimpleNamespace(build=lambda **_: iter(said), images=lambda **_: []))
    with pytest.raises(EnvironmentNotReady) as error:
        build.build_all(engine, told.append)

    assert "exit code 1" in error.value.message
    assert "line 39" in error.value.message
    assert "line 27" not in error.value.message
    assert told == [f"building {image.lab_image()}", "  Step 8/19 : RUN make"]
