"""The containers that hold nodes: what is told of one that has ended."""

from typing import Any, cast

import pytest

from lab.testbed.docker.pod import why_ended

TRACEBACK = b"""Traceback (most recent call last):
  File "inside.py", line 37, in main
    caller.connect(path)
PermissionError: [Errno 13] Permission denied
"""


class FakeContainer:
    """A container in some state, with its last words."""

    def __init__(self, status: str, said: bytes = b"", *, out_of_memory: bool = False) -> None:
        self.status = status
        self.attrs = {"State": {"ExitCode": 1, "OOMKilled": out_of_memory}}
        self._said = said

    def get_wrapped_container(self) -> "FakeContainer":
        return self

    def reload(self) -> None:
        pass

    def logs(self, tail: int) -> bytes:
        return b"\n".join(self._said.splitlines()[-tail:])


@pytest.mark.parametrize("status", ["created", "running"])
def test_of_a_container_that_runs_there_is_nothing_to_tell(status: str) -> None:
    assert why_ended(cast("Any", FakeContainer(status))) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "exit status 1: no output"),
        (b"no such node\ngoing\n", "exit status 1: no such node\ngoing"),
        (TRACEBACK, "exit status 1: PermissionError: [Errno 13] Permission denied"),
    ],
)
def test_its_last_words_are_told_and_of_a_traceback_the_error_alone(said: bytes, told: str) -> None:
    assert why_ended(cast("Any", FakeContainer("exited", said))) == told


def test_that_it_ran_out_of_memory_is_told() -> None:
    container = FakeContainer("exited", b"killed", out_of_memory=True)

    assert why_ended(cast("Any", container)) == "exit status 1, out of memory: killed"
