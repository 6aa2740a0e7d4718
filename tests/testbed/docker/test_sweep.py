"""What lab clean does on an engine: only the lab's own, and only where its owner has ended."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.core.errors import InvalidRun
from lab.testbed import sweep as all_of_it
from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import sweep
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import Owner
from lab.testbed.docker.wire import Api
from lab.testbed.owner import identity
from tests.testbed.docker.sets import SLEEP, container_set, things_of, wire
from tests.testbed.test_runtime import killed_owner


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def dead() -> Owner:
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    name = identity(process.pid)
    process.communicate()
    return Owner(name, labels.boot_id())


def marks_of(owner: Owner) -> dict[str, str]:
    return {**labels.labels("test", "client"), labels.OWNER: owner.identity, labels.BOOT: owner.boot}


@contextmanager
def left_by(engine: Engine, image: str, marks: dict[str, str]) -> Iterator[set[str]]:
    """A running and an exited container, a network, a volume; their names."""
    api = engine.client.api
    name = f"lab-test-{abs(hash(tuple(marks.items())))}"
    api.create_volume(f"{name}-volume", labels=marks)
    network = api.create_network(f"{name}-network", labels=marks)
    config = api.create_host_config(network_mode=network["Id"])
    running = api.create_container(
        image, SLEEP, entrypoint=[], labels=marks, host_config=config, name=f"{name}-running"
    )
    exited = api.create_container(image, ["true"], entrypoint=[], labels=marks, name=f"{name}-exited")
    for container in (running, exited):
        api.start(container)
    api.wait(exited)
    names = {f"{name}-{what}" for what in ("running", "exited", "network", "volume")}
    try:
        yield names
    finally:
        for container in (running, exited):
            if api.containers(all=True, filters={"id": container["Id"]}):
                api.remove_container(container, force=True)
        if api.networks(ids=[network["Id"]]):
            api.remove_network(network["Id"])
        if api.volumes(filters={"name": f"{name}-volume"})["Volumes"]:
            api.remove_volume(f"{name}-volume")


def test_a_dead_owners_things_are_removed_and_listed_a_living_ones_stay(
    engine: Engine, lab_image: str, dead: Owner
) -> None:
    with container_set(engine, lab_image), left_by(engine, lab_image, marks_of(dead)) as left:
        own = things_of(engine, labels.own())

        said = CliRunner().invoke(app, ["clean", "--json"])

        removed = {one["name"]: one for one in json.loads(said.stdout)["removed"]}
        assert said.exit_code == 0
        assert left <= set(removed)
        assert {removed[name]["kind"] for name in left} == {"container", "network", "volume"}
        assert {removed[name]["owner"] for name in left} == {dead.identity}
        assert not things_of(engine, dead)
        assert not {thing.name for thing in own} & set(removed)
        assert {thing.id for thing in things_of(engine, labels.own())} == {thing.id for thing in own}


def test_an_earlier_boots_things_are_removed_whoever_has_the_owners_id_now(engine: Engine, lab_image: str) -> None:
    earlier = Owner(labels.own().identity, "an-earlier-boot")
    with left_by(engine, lab_image, marks_of(earlier)) as left:
        assert left <= {one.name for one in all_of_it.sweep()}
        assert not things_of(engine, earlier)


def test_what_only_resembles_the_labs_stays(engine: Engine, lab_image: str, dead: Owner) -> None:
    marks = marks_of(dead)
    # As on a container that somebody started from the lab's image by hand: the image's own label alone.
    for lacking in ({labels.LAB: "1"}, {key: marks[key] for key in marks if key != labels.LAB}):
        with left_by(engine, lab_image, lacking) as left:
            assert not left & {thing.name for thing in sweep.find_stale(wire(engine))}


def test_an_owner_that_cannot_be_judged_from_here_keeps_its_things(engine: Engine, lab_image: str, dead: Owner) -> None:
    pid, started, namespace = dead.identity.split(":")
    elsewhere = Owner(f"{pid}:{started}:{int(namespace) + 1}", dead.boot)
    with left_by(engine, lab_image, marks_of(elsewhere)) as left:
        assert not left & {one.name for one in all_of_it.find()}


def test_without_an_engine_the_rest_is_cleaned_and_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    folder = killed_owner()

    said = CliRunner().invoke(app, ["clean", "--json"])

    assert said.exit_code == 0
    assert str(folder) in {one["name"] for one in json.loads(said.stdout)["removed"]}
    assert said.stderr.startswith("Containers were not looked for.")


@pytest.mark.usefixtures("engine")
def test_an_engine_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(sweep.local_engines())
    monkeypatch.setattr(Engine, "is_here", False)
    assert not list(sweep.local_engines())


def test_an_engine_that_goes_away_meanwhile_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="went away"):
        sweep.find_stale(Api(tmp_path / "no.sock", "1.41"))
