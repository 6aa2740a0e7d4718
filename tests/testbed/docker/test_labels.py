import os
import subprocess
from pathlib import Path

import pytest

from lab.testbed.docker import labels
from lab.testbed.docker.labels import Owner
from lab.testbed.owner import identity, own_identity


def dead() -> str:
    """The identity of a process that has ended."""
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    name = identity(process.pid)
    process.communicate()
    return name


def test_the_labels_of_a_thing_say_whose_it_is() -> None:
    made = labels.labels("4711", "client")

    assert labels.owner_of(made) == labels.own() == Owner(own_identity(), labels.boot_id())
    assert {f"{key}={value}" for key, value in made.items()} >= {*labels.of_owner(labels.own()), *labels.of_lab()}
    assert {f"{key}={value}" for key, value in made.items()} >= set(labels.of_testbed("4711"))


@pytest.mark.parametrize("lacking", [labels.LAB, labels.OWNER, labels.BOOT])
def test_what_does_not_say_whose_it_is_has_no_owner(lacking: str) -> None:
    made = labels.labels("4711", "client")
    del made[lacking]

    assert labels.owner_of(made) is None
    assert labels.owner_of(None) is None


def test_a_living_owner_is_not_gone_and_a_dead_one_is() -> None:
    assert not labels.is_gone(labels.own())
    assert labels.is_gone(Owner(dead(), labels.boot_id()))


def test_an_owner_of_an_earlier_boot_is_gone_whatever_runs_under_its_id_now() -> None:
    assert labels.is_gone(Owner(own_identity(), "another-boot"))


def test_an_owner_of_another_pid_namespace_is_not_known_to_be_gone() -> None:
    pid, started, namespace = dead().split(":")

    assert not labels.is_gone(Owner(f"{pid}:{started}:{int(namespace) + 1}", labels.boot_id()))


def test_a_living_owner_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(dead(), labels.boot_id())

    def refuse(*_pid_and_signal: int) -> None:
        raise PermissionError

    # As with hidepid, where another user's processes exist and have no folder.
    monkeypatch.setattr(os, "kill", refuse)
    assert not Path("/proc", owner.identity.partition(":")[0]).exists()
    assert not labels.is_gone(owner)
