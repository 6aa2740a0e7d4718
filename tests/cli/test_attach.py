"""What ``lab attach`` says while it works."""

import io
import os
import signal
from typing import Any

import pytest
from rich.console import Console

from lab.cli.attach import _Narrator, _perform
from lab.core.timeline import Observation
from lab.run.attach import AttachSpec
from lab.testbed.docker.sidecar import attach as attaching


def said(*seen: Observation) -> str:
    told = io.StringIO()
    console = Console(file=told, width=100)
    narrator = _Narrator(console)
    for one in (Observation(100.0, "lab", "cut", {"flow": "a > b"}), *seen):
        narrator.tell(one)
    return told.getvalue()


def test_copies_have_the_names_that_they_have_everywhere() -> None:
    kinds = ["tail-loss-probe", "timeout-copy", None]
    copies = [
        Observation(100.0 + number, "container", "copy", {"copies": number, "class": kind, "rto_s": 0.2})
        for number, kind in enumerate(kinds, start=1)
    ]
    lines = said(*copies).splitlines()

    assert [line.split("  ", 2)[-1].strip() for line in lines[1:]] == [
        "copy 1   tail-loss probe",
        "copy 2   timeout copy",
        "copy 3",
    ]


def test_a_program_that_closes_is_told_apart_from_its_kernel() -> None:
    assert "3.20 s  the container's program closed the socket; its kernel goes on" in said(
        Observation(103.2, "container", "closed", {})
    )


def test_an_interrupt_while_joining_says_something_at_once_and_that_nothing_was_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, left = io.StringIO(), []
    console = Console(file=told, width=100)

    def joining(*_: Any) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            left.append(told.getvalue())

    monkeypatch.setattr(attaching, "Attachment", joining)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        _perform(AttachSpec(), "shop-api", "auto", None, console)

    assert left == ["Interrupted: leaving the network of shop-api ...\n"]
    assert told.getvalue().endswith("Nothing was cut.\n")
    assert signal.getsignal(signal.SIGINT) is before
