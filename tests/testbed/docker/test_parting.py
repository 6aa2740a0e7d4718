"""How an attachment's container ends, told by what is asked of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.testbed.docker.labels import LAB, ROLE
from lab.testbed.docker.sidecar import parting
from lab.testbed.docker.sidecar.parting import NotRestored, part
from lab.testbed.docker.wire import Api, Refused

LABELS = {LAB: "1", ROLE: parting.ATTACH, parting.TARGET: "theirs"}


@dataclass(frozen=True, slots=True)
class FakeApi(Api):
    """An engine with one attachment, its target, and the container that cleans."""

    socket: Path = Path("/none")
    version: str = "1.41"
    exit_code: int = 0
    status: str = "exited"
    target: bool | None = True
    """Whether it runs; None where it is gone."""

    cleaned: int = 0
    """Exit status of the container that cleans."""

    asked: list[str] = field(default_factory=list)
    made: list[Mapping[str, Any]] = field(default_factory=list)

    def get(self, *path: str, **query: object) -> Any:  # noqa: ARG002 - the port's signature
        if path[1] == "theirs":
            if self.target is None:
                raise Refused(404, "No such container: theirs")
            return {"State": {"Running": self.target}}
        return {"State": {"Status": self.status, "ExitCode": self.exit_code}, "Image": "sha256:1"}

    def post(self, *path: str, body: object = None, **query: object) -> Any:  # noqa: ARG002 - the port's signature
        self.asked.append(" ".join(path[1:]))
        if isinstance(body, dict):
            self.made.append(body)
            return {"Id": "cleaner"}
        return {"StatusCode": self.cleaned}

    def delete(self, *path: str, **query: object) -> None:  # noqa: ARG002 - the port's signature
        self.asked.append(f"delete {path[1]}")


def test_one_that_restored_by_itself_is_removed() -> None:
    api = FakeApi()
    assert not part(api, "ours", LABELS)
    assert api.asked == ["ours stop", "delete ours"]


def test_after_one_that_was_killed_another_container_restores_first() -> None:
    api = FakeApi(exit_code=137)
    assert part(api, "ours", LABELS)
    assert api.asked == ["ours stop", "create", "cleaner start", "cleaner wait", "delete cleaner", "delete ours"]
    assert api.made[0]["HostConfig"]["NetworkMode"] == "container:theirs"
    assert api.made[0]["Labels"][ROLE] == parting.CLEANING


def test_after_one_that_does_not_stop_another_container_restores_before_it_is_killed() -> None:
    api = FakeApi(exit_code=0, status="running")
    assert part(api, "ours", LABELS)
    assert api.asked == ["ours stop", "create", "cleaner start", "cleaner wait", "delete cleaner", "delete ours"]


@pytest.mark.parametrize("target", [False, None])
def test_of_a_container_that_has_ended_there_is_nothing_to_restore(target: bool | None) -> None:
    api = FakeApi(exit_code=137, target=target)
    assert not part(api, "ours", LABELS)
    assert api.asked == ["ours stop", "delete ours"]


def test_one_that_never_started_has_changed_nothing() -> None:
    api = FakeApi(exit_code=137, status="created")
    assert not part(api, "ours", LABELS)


def test_one_whose_target_could_not_be_restored_stays_for_the_next_try() -> None:
    api = FakeApi(exit_code=137, cleaned=1)
    with pytest.raises(NotRestored, match="ended with 1"):
        part(api, "ours", LABELS)
    assert "delete ours" not in api.asked
    assert "delete cleaner" in api.asked
