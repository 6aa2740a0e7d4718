"""What others do to a testbed, from the engine's events: theirs are told, the lab's own and other testbeds' are not."""

import queue
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from lab.core.errors import InvalidRun
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import ROLE, TESTBED
from lab.testbed.docker.lookout import Lookout
from lab.testbed.docker.wire import Api

HOLDER = "c0ffee"
NETWORK = "beef"
END = None


class FakeEngine:
    """An engine's events, as its API lists them."""

    def __init__(self) -> None:
        self.api_version = (1, 41)
        self.socket_path = "/nowhere"
        self.past: list[dict[str, Any]] = []
        self.stream: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.is_gone = False
        self.ended = threading.Event()

    def add(self, kind: str, action: str, actor: str, **said: str) -> None:
        self.past.append(
            {
                "Type": kind,
                "Action": action,
                "Actor": {"ID": actor, "Attributes": said},
                "timeNano": 1_000 + len(self.past),
            }
        )
        self.stream.put(self.past[-1])

    def container(self, action: str, role: str, testbed: str = "mine", actor: str = "1", **said: str) -> None:
        self.add("container", action, actor, **{TESTBED: testbed, ROLE: role, "image": "app:1", **said})

    def events(self, _api: Api, **query: object) -> "FakeEvents":
        if self.is_gone:
            raise ConnectionRefusedError
        return FakeEvents(self, ends="until" in query)


class FakeEvents:
    def __init__(self, engine: FakeEngine, *, ends: bool) -> None:
        self._engine = engine
        self._ends = ends

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._ends:
            yield from self._engine.past
            return
        while (event := self._engine.stream.get()) is not END:
            yield event
        self._engine.ended.set()

    def hush(self) -> None:
        self._engine.stream.put(END)

    def close(self) -> None:
        pass


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr(Api, "events", lambda api, **query: fake.events(api, **query))
    return fake


@pytest.fixture
def lookout(engine: FakeEngine) -> Iterator[Lookout]:
    made = Lookout(cast("Engine", engine), "mine", [HOLDER], {NETWORK: "lab-mine-left"})
    yield made
    made.close()


def test_nothing_done_is_nothing_seen(lookout: Lookout) -> None:
    assert lookout.seen() == ()


def test_what_is_done_to_nodes_programs_and_networks_is_told_in_order_and_once(
    engine: FakeEngine, lookout: Lookout
) -> None:
    engine.container("pause", "client")
    engine.container("kill", "program", signal="15")
    engine.add("network", "disconnect", NETWORK, name="lab-mine-left", container="f00")
    engine.add("network", "connect", "0ther", name="bridge", container=HOLDER)

    expected = (
        "pause of the client's container",
        "kill (signal 15) of the container of app:1",
        "disconnect of a container at network lab-mine-left",
        "connect of a container at network bridge",
    )
    assert lookout.seen() == expected
    assert lookout.seen() == expected


def test_other_testbeds_a_programs_own_end_and_the_labs_helpers_are_nobodys_doing(
    engine: FakeEngine, lookout: Lookout
) -> None:
    engine.container("pause", "client", testbed="theirs")
    engine.container("die", "program")
    engine.container("kill", "inspector")
    engine.add("network", "connect", "0ther", name="bridge", container="f00")

    assert lookout.seen() == ()


def test_a_signal_of_the_labs_own_is_expected_and_the_next_one_is_not(engine: FakeEngine, lookout: Lookout) -> None:
    lookout.expect_signal("1")
    engine.container("kill", "program", signal="2")
    assert lookout.seen() == ()

    engine.container("kill", "program", signal="9")
    assert lookout.seen() == ("kill (signal 9) of the container of app:1",)


def test_an_event_that_the_engine_has_forgotten_meanwhile_is_remembered(engine: FakeEngine, lookout: Lookout) -> None:
    engine.container("pause", "server")
    engine.stream.put(END)
    assert engine.ended.wait(5)
    engine.past.clear()

    assert lookout.seen()[0] == "pause of the server's container"


def test_a_list_that_ended_is_told(engine: FakeEngine, lookout: Lookout) -> None:
    engine.stream.put(END)
    assert engine.ended.wait(5)
    lookout._thread.join(5)

    assert lookout.seen() == ("the engine ended its list of events: it was stopped or restarted",)


def test_an_engine_that_is_gone_makes_the_run_invalid(engine: FakeEngine, lookout: Lookout) -> None:
    engine.is_gone = True

    with pytest.raises(InvalidRun, match="The Docker engine went away"):
        lookout.seen()
