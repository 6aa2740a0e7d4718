import pytest

from lab.live.client import steps
from lab.live.client.interpreter import Interpreter, offsets
from lab.live.client.script import KINDS


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (steps.Resume(), [0.0, 1.0]),
        (steps.Resume(at=(1.6,)), [1.6]),
        (steps.Resume(at=(), every_s=10.0, until_s=30.0), [0.0, 10.0, 20.0, 30.0]),
        (steps.Resume(at=(0.0, 5.0), every_s=10.0, until_s=26.0), [0.0, 5.0, 15.0, 25.0]),
        (steps.Resume(at=(0.0,), every_s=10.0, until_s=5.0), [0.0]),
    ],
)
def test_attempts_begin_at_the_offsets_and_then_at_the_pace(step: steps.Resume, expected: list[float]) -> None:
    assert list(offsets(step)) == pytest.approx(expected)


def test_every_step_has_its_method() -> None:
    assert [name for name in KINDS if name != "end" and not hasattr(Interpreter, "_" + name.replace("-", "_"))] == []
