"""The lab from Python."""

from pathlib import Path
from typing import Any

import pytest

import lab.api
from lab.api import blackhole
from lab.core.errors import UsageError
from lab.core.fault import Cut, Scope
from lab.core.profiles import PROFILES
from lab.core.uplink import Uplink
from lab.report.record import Outcome, Record
from lab.run.spec import RunSpec
from lab.run.trigger import LineTrigger

RECORD = Record(outcome=Outcome.INVALID, backend="netns")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RunSpec, Path | None]]:
    """What runs were asked for; none is run."""
    runs: list[tuple[RunSpec, Path | None]] = []

    class FakeRun:
        def __init__(self, spec: RunSpec, _open: object, *, out: Path | None, backend: str) -> None:
            assert backend in ("netns", "docker")
            runs.append((spec, out))

        def execute(self) -> Record:
            return RECORD

    monkeypatch.setattr(lab.api, "Run", FakeRun)
    monkeypatch.setattr(lab.api, "opener", lambda *_, **__: None)
    return runs


def test_a_call_is_a_run(asked: list[tuple[RunSpec, Path | None]], tmp_path: Path) -> None:
    record = blackhole(["srv", "-p"], ["cli"], 5000, direction="return", scope="host", watch_s=3.0, out=tmp_path)

    assert record is RECORD
    ((spec, out),) = asked
    assert spec.server is not None
    assert (spec.server.argv, spec.client.argv, spec.port, out) == (("srv", "-p"), ("cli",), 5000, tmp_path)
    assert (spec.direction, spec.scope, spec.watch_s, spec.profile.name) == (Cut.RETURN, Scope.HOST, 3.0, "linux")


def test_cut_heal_and_end_can_follow_lines(asked: list[tuple[RunSpec, Path | None]]) -> None:
    blackhole(["srv"], ["cli"], 5000, cut_when="idle", heal_when="server:tired", heal_after_s=2.0, until="done")

    ((spec, _),) = asked
    assert spec.cut_when == LineTrigger("client", "idle")
    assert spec.heal_when == LineTrigger("server", "tired", delay_s=2.0)
    assert spec.heal_after_s is None
    assert spec.end_when == LineTrigger("client", "done")


def test_a_server_outside_takes_the_place_of_a_command_and_a_port(
    asked: list[tuple[RunSpec, Path | None]],
) -> None:
    blackhole(client=["cli"], uplink="203.0.113.9:443")

    ((spec, _),) = asked
    assert (spec.server, spec.port, spec.uplink) == (None, 443, Uplink("203.0.113.9", 443, "203.0.113.9"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"client": ["cli"]}, "server and its port were expected"),
        ({"server": ["srv"], "client": ["cli"]}, "server and its port were expected"),
        ({"server": ["srv"], "port": 5000}, "nothing to run in the client node"),
        ({"server": ["srv"], "client": ["cli"], "uplink": "203.0.113.9:443"}, "do not go with it"),
        ({"client": ["cli"], "port": 443, "uplink": "203.0.113.9:443"}, "do not go with it"),
        ({"client": ["cli"], "uplink": "203.0.113.9"}, "HOST:PORT"),
    ],
)
def test_half_a_server_or_two_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        blackhole(**arguments)


def test_a_profile_of_ones_own_is_taken_as_it_is(asked: list[tuple[RunSpec, Path | None]]) -> None:
    blackhole(["srv"], ["cli"], 5000, profile=PROFILES["fast"])

    assert asked[0][0].profile is PROFILES["fast"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"direction": "up"}, "both, forward, return, got 'up'"),
        ({"scope": "world"}, "flow, host, got 'world'"),
        ({"profile": "fsat"}, "got 'fsat'"),
        ({"noticed": "("}, "no regular expression"),
        ({"watch_s": 0.0}, "some time"),
    ],
)
def test_a_mistake_is_an_error_of_the_lab(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        blackhole(["srv"], ["cli"], 5000, **options)
