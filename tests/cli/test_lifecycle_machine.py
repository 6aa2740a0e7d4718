"""A machine that lacks something, or is too busy, is told of in one sentence."""

import asyncio
import errno
import gc
import resource
import socket
import threading
import urllib.error
from typing import Any, NoReturn

import pytest

from lab.cli.lifecycle_machine import FILES, check, in_a_sentence, known
from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, UsageError
from lab.host.machine.commands import Outcome
from lab.host.shell.failures import RequestFailed
from lab.live.lifecycle import ConnectionLost


def limits(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    """A process that may open so many files; what it is then given."""
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: given.append(pair))
    return given


def failing(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def test_here_all_is_there() -> None:
    check()


def test_too_few_files_are_told_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 64, 128)
    with pytest.raises(EnvironmentNotReady, match="may open 128 files here") as told:
        check()

    assert told.value.fix == "ulimit -n 4096"


def test_few_files_that_may_be_more_are_made_more(monkeypatch: pytest.MonkeyPatch) -> None:
    given = limits(monkeypatch, 64, 4096)
    check()

    assert given == [(FILES, 4096)]


@pytest.mark.parametrize("hard", [FILES, resource.RLIM_INFINITY])
def test_enough_files_are_left_as_they_are(hard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = limits(monkeypatch, FILES, hard)
    check()

    assert given == []


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "lo up"),
        (TimeoutError("timed out"), "firewall"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), "ip_local_port_range"),
    ],
)
def test_loopback_that_leads_nowhere_is_told_before_anything_is_measured(
    error: OSError, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", failing(error))
    with pytest.raises(EnvironmentNotReady) as told:
        check()

    assert fix in (told.value.fix or "")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.EMFILE, "Too many open files"), EnvironmentNotReady),
        (OSError(errno.EADDRINUSE, "Address already in use", "127.0.0.1:0"), EnvironmentNotReady),
        (urllib.error.URLError(OSError(errno.EADDRNOTAVAIL, "Cannot assign")), EnvironmentNotReady),
        (urllib.error.URLError(TimeoutError("timed out")), InvalidRun),
        (TimeoutError(), InvalidRun),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), InvalidRun),
        (ConnectionLost("The connection ended without a close frame."), InvalidRun),
        (RequestFailed(Outcome.TIMED_OUT, "no answer"), InvalidRun),
    ],
    ids=repr,
)
def test_what_a_machine_without_room_or_time_raises_is_no_bug(error: Exception, kind: type[LabError]) -> None:
    told = known(error)

    assert isinstance(told, kind)
    assert told.fix is not None


def test_what_says_itself_stays_as_it_is_and_a_bug_is_one() -> None:
    said: tuple[BaseException, ...] = (UsageError("no"), InvalidRun("no"), KeyboardInterrupt())
    bugs = ValueError("x"), AssertionError(), OSError(errno.ENOSPC, "No space left on device")

    assert [known(error) for error in said] == list(said)
    assert [known(error) for error in bugs] == [None, None, None]


async def fails() -> None:
    raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody's")


async def one_of_two(error: Exception | None) -> None:
    """Fail beside a task that failed too, and that nobody asks."""
    task = asyncio.ensure_future(fails())
    await asyncio.wait({task})
    asyncio.get_running_loop().call_exception_handler({"message": "as a loop says it"})
    thread = threading.Thread(target=failing(RuntimeError("in a thread")))
    thread.start()
    thread.join()
    if error is not None:
        raise error


@pytest.fixture(autouse=True)
def without_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_DEBUG", raising=False)


def test_what_else_failed_with_it_is_not_told(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidRun), in_a_sentence():
        asyncio.run(one_of_two(TimeoutError("timed out during opening handshake")))
    gc.collect()

    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_where_nothing_ended_it_all_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with in_a_sentence():
        asyncio.run(one_of_two(None))
    said = capsys.readouterr().err

    assert "never retrieved" in said
    assert "in a thread" in said


def test_what_ends_in_a_bug_is_told_with_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), in_a_sentence():
        asyncio.run(one_of_two(ZeroDivisionError()))
    said = capsys.readouterr().err

    assert "as a loop says it" in said
    assert "in a thread" in said


def test_with_lab_debug_what_raised_it_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_DEBUG", "1")
    error = OSError(errno.EMFILE, "Too many open files")
    with pytest.raises(EnvironmentNotReady) as told, in_a_sentence():
        raise error

    assert told.value.__cause__ is error


def test_a_run_that_goes_well_leaves_all_as_it_was() -> None:
    before = threading.excepthook
    with in_a_sentence():
        assert threading.excepthook is not before

    assert threading.excepthook is before
