"""Recognition in another process: right, known without one, and gone when it is to be."""

import io
import json
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.live.voice import apart as module
from lab.live.voice import recogniser
from lab.live.voice.apart import Apart, serve
from lab.live.voice.clips import load

BOOK = "book me the three p m slot tomorrow please"


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[Apart]:
    pytest.importorskip("pocketsphinx")
    monkeypatch.setattr(recogniser, "remembered", lambda _pcm: None)
    made = Apart()
    yield made
    made.close()


def test_it_hears_what_the_recogniser_hears_in_one_other_process(apart: Apart) -> None:
    assert apart.words(load("book").pcm) == BOOK
    pid = apart.pid
    assert apart.words(load("thanks").pcm) == "thank you goodbye"

    assert pid not in (None, os.getpid())
    assert apart.pid == pid


def test_what_this_process_remembers_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recogniser, "remembered", {b"known": "did you book it"}.get)
    apart = Apart()

    assert apart.words(b"known") == "did you book it"
    assert apart.pid is None


def test_a_process_that_has_ended_is_said_once_and_begun_again(apart: Apart) -> None:
    apart.words(load("thanks").pcm)
    assert apart.pid is not None
    os.kill(apart.pid, signal.SIGKILL)

    with pytest.raises(RuntimeError, match="ended"):
        apart.words(load("book").pcm)
    assert apart.words(load("book").pcm) == BOOK


def test_closing_ends_the_process_in_the_midst_of_an_utterance(apart: Apart) -> None:
    apart.words(load("thanks").pcm)
    heard: list[str] = []
    asking = threading.Thread(target=lambda: heard.append(apart.words(load("book").pcm * 50)))
    asking.start()
    apart.close()
    asking.join(10)

    assert heard == [""]
    assert apart.pid is None
    assert apart.words(b"") == ""


def test_a_missing_recogniser_is_said_in_the_asking_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_pcm: bytes) -> str:
        raise EnvironmentNotReady("Speech needs pocketsphinx.", fix="install it")

    monkeypatch.setattr(recogniser, "recognise", missing)
    requests, answers = io.BytesIO((2).to_bytes(4, "big") + b"xx"), io.BytesIO()
    serve(requests, answers)
    assert json.loads(answers.getvalue()) == {"error": "Speech needs pocketsphinx.", "fix": "install it"}

    apart = Apart()
    answer = json.loads(answers.getvalue())
    monkeypatch.setattr(recogniser, "remembered", lambda _pcm: None)
    monkeypatch.setattr(module, "_begin", lambda: None)
    monkeypatch.setattr(module, "_ask", lambda _child, _pcm: answer)
    with pytest.raises(EnvironmentNotReady, match="install it"):
        apart.words(b"xx")
