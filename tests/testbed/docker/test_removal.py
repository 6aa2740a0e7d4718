"""What is removed, in which order and for how long; a made-up engine and a made-up clock."""

import subprocess
import sys
from typing import Any

import pytest

from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import removal, standby
from lab.testbed.docker.cleanup.removal import Kind, find, remove_all_of
from lab.testbed.docker.labels import Owner
from lab.testbed.docker.wire import Refused

OWNER = Owner("7:8:9", "this-boot")
MARKS = {labels.LAB: "1", labels.OWNER: OWNER.identity, labels.BOOT: OWNER.boot}


class MadeUpEngine:
    """Lists and removes by name; something may appear, refuse or be silent at a given instant."""

    def __init__(self, **things: Kind) -> None:
        self.now = 0.0
        self.things = dict(things)
        self.appearing: dict[str, tuple[float, Kind]] = {}
        self.removed: list[str] = []
        self.disconnected: list[object] = []
        self.refusing_until = 0.0
        self.silent_until = 0.0
        self.attached: dict[str, list[str]] = {}
        self.answer_s = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, duration_s: float) -> None:
        self.now += duration_s

    def get(self, *path: str, **_query: object) -> Any:
        self.now += self.answer_s
        if self.now < self.silent_until:
            raise ConnectionRefusedError
        if path[0] == "networks" and len(path) > 1:
            return {"Containers": {name: {} for name in self.attached.get(path[1], [])}}
        for name, (at, kind) in list(self.appearing.items()):
            if at <= self.now:
                self.things[name] = kind
                del self.appearing[name]
        if path[0] == "containers":
            return [{"Id": one, "Names": [f"/{one}"], "Labels": MARKS} for one in self._of(Kind.CONTAINER)]
        if path[0] == "networks":
            return [{"Id": one, "Name": one, "Labels": MARKS} for one in self._of(Kind.NETWORK)]
        return {"Volumes": [{"Name": one, "Labels": MARKS} for one in self._of(Kind.VOLUME)] or None}

    def post(self, *path: str, body: object = None, **_query: object) -> None:
        assert path[2] == "disconnect"
        self.disconnected.append(body)
        self.attached.pop(path[1])

    def delete(self, *path: str, **_query: object) -> None:
        name = path[1]
        if self.now < self.refusing_until or self.attached.get(name):
            raise Refused(403, "has active endpoints")
        if name not in self.things:
            raise Refused(404, "no such thing")
        del self.things[name]
        self.removed.append(name)

    def _of(self, kind: Kind) -> list[str]:
        return [name for name, its in self.things.items() if its is kind]


def clean(engine: MadeUpEngine, spare: str | None = None) -> bool:
    return remove_all_of(engine, OWNER, spare, clock=engine.clock, sleep=engine.sleep)  # type: ignore[arg-type]


def test_containers_go_before_the_networks_and_volumes_that_they_use() -> None:
    engine = MadeUpEngine(data=Kind.VOLUME, left=Kind.NETWORK, client=Kind.CONTAINER, server=Kind.CONTAINER)

    assert clean(engine)
    assert set(engine.removed[:2]) == {"client", "server"}
    assert engine.removed[2:] == ["left", "data"]


def test_the_container_that_does_it_is_spared() -> None:
    engine = MadeUpEngine(reaper=Kind.CONTAINER, client=Kind.CONTAINER)

    assert clean(engine, spare="reaper")
    assert engine.removed == ["client"]


def test_what_appears_within_the_settle_time_is_removed_and_starts_it_anew() -> None:
    engine = MadeUpEngine(client=Kind.CONTAINER)
    engine.appearing = {"late": (1.5, Kind.CONTAINER), "later": (3.0, Kind.NETWORK)}

    assert clean(engine)
    assert engine.removed == ["client", "late", "later"]
    assert engine.now == pytest.approx(3.0 + removal.SETTLE_S, abs=3 * removal.PAUSE_S)


@pytest.mark.parametrize(("answer_s", "settle_s"), [(0.01, 2.0), (0.2, 3.0), (0.5, 4.0)])
def test_a_slow_engine_is_given_a_longer_settle_time(answer_s: float, settle_s: float) -> None:
    engine = MadeUpEngine()
    engine.answer_s = answer_s

    assert clean(engine)
    # Three lists make one look.
    assert settle_s <= engine.now <= settle_s + 2 * (3 * answer_s + removal.PAUSE_S)


def test_what_is_busy_is_asked_again() -> None:
    engine = MadeUpEngine(client=Kind.CONTAINER)
    engine.refusing_until = 1.0

    assert clean(engine)
    assert engine.removed == ["client"]


def test_an_engine_that_is_being_restarted_is_waited_for() -> None:
    engine = MadeUpEngine(client=Kind.CONTAINER)
    engine.silent_until = 20.0

    assert clean(engine)
    assert engine.removed == ["client"]


def test_a_clean_up_that_never_succeeds_ends_and_says_so() -> None:
    engine = MadeUpEngine(client=Kind.CONTAINER)
    engine.refusing_until = float("inf")

    assert not clean(engine)
    assert engine.now == pytest.approx(removal.LONGEST_S, abs=1)


def test_a_strangers_container_does_not_hold_a_network() -> None:
    engine = MadeUpEngine(left=Kind.NETWORK)
    engine.attached = {"left": ["strangers"]}

    assert clean(engine)
    assert engine.disconnected == [{"Container": "strangers", "Force": True}]
    assert engine.removed == ["left"]


def test_lists_say_kind_name_and_owner() -> None:
    found = find(MadeUpEngine(data=Kind.VOLUME, client=Kind.CONTAINER), ["x"])  # type: ignore[arg-type]

    assert [(thing.kind, thing.name, thing.owner) for thing in found] == [
        (Kind.CONTAINER, "client", OWNER),
        (Kind.VOLUME, "data", OWNER),
    ]


def test_an_attached_stream_is_its_frames_texts() -> None:
    frames = b"\x02\0\0\0\0\0\0\x04one\n" + b"\x01\0\0\0\0\0\0\x03two" + b"\x01\0\0"

    assert standby._plain(frames) == "one\ntwo"


def test_waiting_needs_nothing_but_the_standard_library() -> None:
    """The reaper's and the standby's memory, and how fast they start."""
    names = "{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)"
    modules = "sys, lab.testbed.docker.cleanup.reaping, lab.testbed.docker.cleanup.standby"
    code = f"import {modules}; print({names} - {{'lab', '__main__'}})"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
