"""What lab doctor says of engines."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, Unsupported
from lab.testbed.docker import engine as engines
from lab.testbed.docker import readiness
from lab.testbed.docker.images import image
from lab.testbed.docker.readiness import ENGINE, IMAGE, RYUK
from lab.testbed.requirement import Status


def refuse(error: Exception) -> Any:
    def connect() -> Any:
        raise error

    return connect


class Answering(contextlib.AbstractContextManager[Any]):
    """An engine that has answered."""

    version, address = "20.10.24", "unix:///run/some.sock"

    def __init__(self, local: Exception | None = None) -> None:
        self._local = local
        self.client = SimpleNamespace()

    def require_local(self) -> None:
        if self._local is not None:
            raise self._local

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EnvironmentNotReady("There is no engine.", fix="start one"), Status.OPTIONAL_MISSING),
        (EnvironmentNotReady("This user may not open it.", fix="join the group"), Status.RESTRICTED),
        (Unsupported("It is too old.", fix="a newer one"), Status.RESTRICTED),
    ],
)
def test_an_engine_that_does_not_answer_blocks_nothing_and_names_its_fix(error: Any, status: Status) -> None:
    (found,) = readiness.inspect(refuse(error))

    assert (found.name, found.status, found.seen, found.fix) == (ENGINE, status, error.message, error.fix)
    assert not found.blocks
    assert not readiness.is_ready([found])


def test_an_engine_elsewhere_is_told_with_its_reason() -> None:
    answering: Any = Answering(Unsupported("It runs in a virtual machine."))
    (found,) = readiness.inspect(lambda: answering)

    assert (found.status, found.seen) == (Status.RESTRICTED, "It runs in a virtual machine.")


@pytest.mark.parametrize("built", [True, False])
def test_containers_can_be_had_where_the_image_is(monkeypatch: pytest.MonkeyPatch, built: bool) -> None:
    monkeypatch.setattr(image, "is_built", lambda _: built)
    monkeypatch.setattr(engines, "has_image", lambda *_: False)
    answering: Any = Answering()
    found = readiness.inspect(lambda: answering)

    assert [one.name for one in found] == [ENGINE, IMAGE, RYUK]
    assert readiness.is_ready(found) is built
    assert found[1].fix == (None if built else "lab image build")
