import contextlib
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, LabError, UsageError
from lab.report.folder import RunFolder
from lab.run import backend
from lab.run.backend import Images, choose, name_of, open_docker, opener
from lab.run.runner import Run
from lab.run.spec import Program, RunSpec
from lab.testbed.docker import engine
from lab.testbed.ports import TestbedSpec


class Opened:
    """A testbed that only has to be closed."""

    def close(self) -> None:
        """Nothing to do."""


def refuse(error: LabError) -> Any:
    def refused(*_: object, **__: object) -> Any:
        raise error

    return refused


def test_a_backend_is_one_of_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'dokcer' is none of them. Fix: --backend docker$"):
        opener("dokcer")
    with pytest.raises(UsageError, match=r"Fix: --backend auto or netns or docker$"):
        opener("podman")


def test_a_missing_image_is_said_before_anything_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "connect", lambda: contextlib.nullcontext(object()))
    monkeypatch.setattr(engine, "has_image", lambda _, name: name == "there")

    opener("docker", Images(client="there"))
    with pytest.raises(EnvironmentNotReady, match=r"There is no image absent on this engine. Fix: docker pull absent"):
        opener("docker", Images(client="there", server="absent"))


def test_images_need_containers() -> None:
    with pytest.raises(UsageError, match="has no images"):
        opener("netns", Images(client="some/image"))


def test_auto_takes_namespaces_where_they_work_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "open_netns", lambda _: Opened())
    said: list[str] = []

    assert choose("auto", said.append) == "netns"
    assert said == ["backend: netns, since this user may make namespaces here"]


def test_auto_says_both_reasons_where_nothing_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "open_netns", refuse(EnvironmentNotReady("No namespaces.", fix="allow them")))
    monkeypatch.setattr(engine, "connect", refuse(EnvironmentNotReady("No engine.", fix="start one")))

    with pytest.raises(EnvironmentNotReady, match=r"Embedded: No namespaces\. Containers: No engine\.") as raised:
        opener("auto")(TestbedSpec())

    assert raised.value.fix == "allow them or start one"


def test_auto_takes_containers_where_the_server_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "open_netns", refuse(AssertionError()))  # type: ignore[arg-type]  # nothing may ask it
    said: list[str] = []
    opened = opener("auto", None, said.append, leads_outside=True)

    assert opened is not backend.open_netns
    assert said == ["backend: docker, since the embedded one has no way out to a server outside"]


def test_who_names_a_backend_gets_it_even_if_it_has_no_way_out() -> None:
    assert opener("netns", leads_outside=True) is backend.open_netns


def test_a_run_that_gets_no_testbed_says_which_it_was_to_have(tmp_path: Path) -> None:
    spec = RunSpec(server=Program(("true",)), client=Program(("true",)), port=5000)
    refused = refuse(EnvironmentNotReady("There is no engine.", fix="start one"))

    with pytest.raises(EnvironmentNotReady):
        Run(spec, refused, out=tmp_path, backend=name_of(open_docker())).execute()

    assert RunFolder(tmp_path).read_record().backend == "docker"
