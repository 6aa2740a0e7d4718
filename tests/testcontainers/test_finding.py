"""Whose fault it is that no flow came."""

import time
from typing import Any, cast

import pytest

from lab.core.errors import UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.testcontainers.finding import Finder

FLOW = FourTuple(Endpoint("192.0.2.2", 40000), Endpoint("198.51.100.2", 8080))


class NothingPasses:
    def flows(self) -> list[object]:
        return []

    light = flows


class Container:
    """One that runs and has printed two lines."""

    status = "running"

    def get_wrapped_container(self) -> "Container":
        return self

    def reload(self) -> None:
        pass

    def logs(self, tail: int) -> bytes:
        return b"".join([b"connected\n", b"sent hello\n"][-tail:])


def finder(cuts: dict[FourTuple, float]) -> Finder:
    return Finder(cast("Any", NothingPasses()), None, cast("Any", {"client": Container()}), cuts)


def test_a_client_that_does_not_come_back_after_a_cut_is_a_finding() -> None:
    with pytest.raises(TimeoutError) as seen:
        finder({FLOW: time.monotonic() - 3.0}).find(8080, None, 0.05)

    said = "the client has opened no other connection to port 8080; its last line: sent hello"
    assert str(seen.value).startswith("3.")
    assert str(seen.value).endswith(f" s after the cut {said}")


@pytest.mark.parametrize(("cuts", "port"), [({}, 8080), ({FLOW: 0.0}, 8081)])
def test_without_a_cut_to_that_port_it_is_the_authors_mistake(cuts: dict[FourTuple, float], port: int) -> None:
    with pytest.raises(UsageError, match=f"no established flow to port {port}"):
        finder(cuts).find(port, None, 0.05)
