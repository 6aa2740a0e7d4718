"""The reaper against a real engine: when it acts, when it does not, and what becomes of it."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from lab.core.errors import EnvironmentNotReady, LabError, UsageError
from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import guard, reaper
from lab.testbed.docker.cleanup.reaper import Watch
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import Owner
from tests.testbed.docker.owners import Victim, owner, until, wait_until_nothing_is_left
from tests.testbed.docker.sets import SLEEP, container_set, things_of

pytestmark = pytest.mark.usefixtures("own_reaper")

OWNER = """
import os, secrets, sys, time
from lab.testbed.docker.cleanup import guard, reaper
from lab.testbed.docker import labels
from lab.testbed.docker.engine import connect
from tests.testbed.docker.sets import bring_up
engine, image = connect(), {image!r}
watch = reaper.watch(engine, image)
"""
SET_UP = """
bring_up(engine, image, secrets.token_hex(6))
watch.wait()
print("up", flush=True)
"""
LAST = "time.sleep(600)"


@pytest.fixture
def own_reaper(engine: Engine) -> Iterator[None]:
    reaper.shut_down()
    until(lambda: own_things(engine) == [])
    yield
    reaper.shut_down()


def code(image: str, *parts: str) -> str:
    return "".join((OWNER.format(image=image), *parts))


def make(engine: Engine, image: str, marks: dict[str, str], **more: object) -> str:
    """A running container; its id."""
    api = engine.client.api
    made = api.create_container(image, SLEEP, entrypoint=[], labels=marks, host_config=api.create_host_config(**more))
    api.start(made)
    return str(made["Id"])


def marks_of(owner: Owner) -> dict[str, str]:
    return {**labels.labels("test", "client"), labels.OWNER: owner.identity, labels.BOOT: owner.boot}


def own_things(engine: Engine) -> list[str]:
    return sorted(thing.name for thing in things_of(engine, labels.own()))


def test_it_holds_no_capability_and_is_the_callers_own_user(engine: Engine, lab_image: str) -> None:
    with reaper.watch(engine, lab_image) as watch:
        watch.wait()
        state = engine.client.api.inspect_container(watch.container)
        look = engine.client.api.exec_create(watch.container, ["cat", "/proc/1/status"])
        status = engine.client.api.exec_start(look).decode()

        assert state["HostConfig"]["NetworkMode"] == "none"
        assert re.findall(r"Cap\w+:\s+(\w+)", status) == ["0" * 16] * 5
        assert re.search(r"Uid:\s+(\d+)", status)[1] == str(os.geteuid())  # type: ignore[index]
        assert re.search(r"NoNewPrivs:\s+1", status)


def test_a_process_has_one_and_it_goes_at_once_when_nothing_is_left(engine: Engine, lab_image: str) -> None:
    with reaper.watch(engine, lab_image) as first, reaper.watch(engine, lab_image) as second:
        first.wait()
        second.wait()
        assert own_things(engine) == [first.container] == [second.container]

    reaper.shut_down()
    assert until(lambda: not own_things(engine)) < 2.0


def test_an_owner_that_ends_without_closing_has_its_things_removed(engine: Engine, lab_image: str) -> None:
    with owner("-c", code(lab_image, SET_UP)) as victim:
        assert victim.hear() == "up"
        assert victim.process.wait(10) == 0
        wait_until_nothing_is_left(engine, victim.owner)


def test_an_owner_whose_reaper_is_gone_has_its_things_removed_as_well(engine: Engine, lab_image: str) -> None:
    """As after a restart of the engine, which ends every container."""
    with owner("-c", code(lab_image, SET_UP, "engine.client.api.kill(watch.container)\n")) as victim:
        assert victim.hear() == "up"
        assert victim.process.wait(20) == 0
        wait_until_nothing_is_left(engine, victim.owner)


def test_a_killed_owner_has_its_things_removed_and_another_keeps_its_own(engine: Engine, lab_image: str) -> None:
    with container_set(engine, lab_image), owner("-c", code(lab_image, SET_UP, LAST)) as victim:
        before = own_things(engine)
        assert victim.hear() == "up"
        assert len(things_of(engine, victim.owner)) > len(before) == 8
        victim.kill()
        wait_until_nothing_is_left(engine, victim.owner)

        assert own_things(engine) == before
        running = engine.client.api.containers(filters={"label": labels.of_owner(labels.own())})
        assert len(running) == 5


@pytest.mark.parametrize("delay", ["", "time.sleep(0.1)", "time.sleep(0.3)", "time.sleep(0.6)"])
def test_an_owner_that_is_killed_before_its_reaper_watches_leaves_nothing(
    engine: Engine, lab_image: str, delay: str
) -> None:
    with owner("-c", code(lab_image, delay, "\nprint('now', flush=True)\n", SET_UP, LAST)) as victim:
        assert victim.hear() == "now"
        victim.kill()
        wait_until_nothing_is_left(engine, victim.owner)


def test_what_the_engine_finishes_after_the_owners_death_is_removed_too(engine: Engine, lab_image: str) -> None:
    with owner("-c", code(lab_image, SET_UP, LAST)) as victim:
        assert victim.hear() == "up"
        victim.kill()
        until(lambda: [thing.labels[labels.ROLE] for thing in things_of(engine, victim.owner)] == [labels.REAPER])
        # Created, not started: it may be gone before that.
        late = engine.client.api.create_container(lab_image, SLEEP, labels=marks_of(victim.owner))["Id"]
        wait_until_nothing_is_left(engine, victim.owner)

    assert not engine.client.api.containers(all=True, filters={"id": late})


def test_a_network_goes_although_a_strangers_container_is_on_it_and_that_stays(engine: Engine, lab_image: str) -> None:
    with owner("-c", code(lab_image, SET_UP, LAST)) as victim:
        assert victim.hear() == "up"
        network = next(thing.id for thing in things_of(engine, victim.owner) if thing.kind.value == "network")
        stranger = make(engine, lab_image, {}, network_mode=network)
        try:
            victim.kill()
            wait_until_nothing_is_left(engine, victim.owner)
            assert engine.client.api.inspect_container(stranger)["State"]["Running"]
        finally:
            engine.client.api.remove_container(stranger, force=True)


def test_a_fork_that_outlives_its_owner_keeps_nothing(engine: Engine, lab_image: str) -> None:
    fork = "if not (child := os.fork()): time.sleep(600)\nprint(child, flush=True)\n"
    with owner("-c", code(lab_image, SET_UP, fork, LAST)) as victim:
        assert victim.hear() == "up"
        child = int(victim.hear())
        victim.kill()
        try:
            wait_until_nothing_is_left(engine, victim.owner)
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forks_end_is_not_its_owners(engine: Engine, lab_image: str) -> None:
    fork = """
if not os.fork():
    sys.exit()
os.wait()
print(watch.is_alive, os.path.exists(watch._guard._folder), flush=True)
"""
    with owner("-c", code(lab_image, SET_UP, fork, LAST)) as victim:
        assert victim.hear() == "up"
        assert victim.hear() == "True True"
        assert len(things_of(engine, victim.owner)) == 9


def test_a_reaper_that_dies_is_noticed_and_replaced_at_the_next_testbed(engine: Engine, lab_image: str) -> None:
    with reaper.watch(engine, lab_image) as watch:
        watch.wait()
        assert watch.is_alive
        engine.client.api.kill(watch.container)
        until(lambda: not watch.is_alive)

        with reaper.watch(engine, lab_image) as another:
            another.wait()
            assert another.is_alive
            assert another.container != watch.container
            until(lambda: own_things(engine) == [another.container])


def start(engine: Engine, image: str) -> tuple[Watch, LabError]:
    """A reaper that cannot start: its watch, and why."""
    watch = reaper.watch(engine, image)
    with pytest.raises(LabError) as caught:
        watch.wait()
    assert not watch.is_alive
    return watch, caught.value


def test_a_missing_image_is_named_with_its_fix(engine: Engine) -> None:
    watch, error = start(engine, "blackhole-lab/lab:no-such-version")
    with watch:
        assert isinstance(error, EnvironmentNotReady)
        assert error.fix == "lab image build"
        assert own_things(engine) == []


def test_an_image_that_is_not_the_labs_is_refused_and_nothing_stays(engine: Engine, lab_image: str) -> None:
    base = "debian:bookworm-slim"
    watch, error = start(engine, base)
    with watch:
        assert isinstance(error, UsageError)
        assert "lab.testbed.docker.cleanup.reaping" in str(error)
        # The next testbed tries anew, and what is up already is left alone meanwhile.
        with container_set(engine, lab_image), reaper.watch(engine, lab_image) as another:
            another.wait()
            assert len(own_things(engine)) == 9


def test_what_a_reaper_says_before_it_dies_is_told(
    engine: Engine, lab_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = guard._order

    def wrong(*arguments: object) -> dict[str, object]:
        changed = order(*arguments)  # type: ignore[arg-type]
        changed["container"]["Cmd"] = ["lab.no_such_module"]
        return changed

    monkeypatch.setattr(guard, "_order", wrong)
    watch, error = start(engine, lab_image)
    with watch:
        assert isinstance(error, EnvironmentNotReady)
        assert "No module named lab.no_such_module" in str(error)
    until(lambda: own_things(engine) == [])


def test_a_reaper_without_the_engines_socket_says_so(
    engine: Engine, lab_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = guard._order

    def wrong(*arguments: object) -> dict[str, object]:
        changed = order(*arguments)  # type: ignore[arg-type]
        changed["container"]["HostConfig"]["Mounts"][0]["Source"] = "/dev/null"
        return changed

    monkeypatch.setattr(guard, "_order", wrong)
    watch, error = start(engine, lab_image)
    with watch:
        assert "cannot use the engine's socket" in str(error)
    until(lambda: own_things(engine) == [])


def test_a_standby_process_that_is_killed_is_not_waited_for(engine: Engine, lab_image: str) -> None:
    with reaper.watch(engine, lab_image) as watch:
        watch._guard._process.kill()
        with pytest.raises(LabError, match="was killed"):
            watch.wait()
        assert not watch.is_alive
    for thing in things_of(engine, labels.own()):
        engine.client.api.remove_container(thing.id, force=True)


def test_victims_are_what_they_say(engine: Engine, lab_image: str) -> None:
    with owner("-c", code(lab_image, "print(labels.own().identity, flush=True)\n", LAST)) as victim:
        assert isinstance(victim, Victim)
        assert victim.hear() == victim.owner.identity
        victim.kill()
        wait_until_nothing_is_left(engine, victim.owner)
