import asyncio
import errno
import functools

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB, PUBLISHED, VARIANTS, Variant
from lab.live.lifecycle.endings import Party
from lab.live.lifecycle.websocket import WebSocketWire
from lab.study.lifecycle import closes, predictions
from lab.study.lifecycle.closes import (
    CODES,
    CROSSED,
    FRAME,
    GONE,
    KEPT,
    OPEN,
    SETUP,
    CloseRow,
    End,
    as_json,
    ends,
    rows,
)


@functools.cache
def table(variant: Variant) -> list[CloseRow]:
    return asyncio.run(rows([variant]))


def row(variant: Variant, phase: str, code: int, by: str, how: str = FRAME) -> CloseRow:
    (found,) = [each for each in table(variant) if (each.phase, each.code, each.by, each.how) == (phase, code, by, how)]
    return found


def test_every_code_of_a_server_is_in_the_table_in_both_phases() -> None:
    found = {(each.phase, each.code) for each in table(LAB) if (each.by, each.how) == ("server", FRAME)}

    assert found == {(phase, code) for phase in (SETUP, OPEN) for code in CODES}


def test_every_end_is_in_the_table_once() -> None:
    assert len(table(LAB)) == len(ends()) == len(set(ends()))
    assert {each.how for each in table(LAB)} == {FRAME, KEPT, GONE, CROSSED}
    assert {(each.phase, each.by) for each in table(LAB)} == {
        (phase, party.value) for phase in (SETUP, OPEN) for party in Party
    }


def test_the_labs_session_tells_every_end_right() -> None:
    assert [each for each in as_json(table(LAB)) if not each["ok"]] == []


@pytest.mark.parametrize("variant", [LAB, PUBLISHED])
def test_everybody_is_told_what_was_predicted(variant: Variant) -> None:
    others = [each for each in VARIANTS if each != variant.name]
    said = list(predictions.closes_wrong(table(variant)))

    assert [each for each in said if not any(other in each for other in others)] == []


def test_a_servers_1001_is_the_servers() -> None:
    assert row(LAB, OPEN, 1001, "server").reader == "ClosedByServer: server 1001"


def test_a_servers_1001_is_told_to_nobody_as_published() -> None:
    found = row(PUBLISHED, OPEN, 1001, "server")

    assert (found.reader, found.sender, found.is_closed, found.ok) == ("nothing", "no error", False, False)


def test_a_setup_refused_with_1001_is_no_error_as_published() -> None:
    assert row(PUBLISHED, SETUP, 1001, "server").connect == "no error"


@pytest.mark.parametrize("code", [code for code in CODES if code != 1001])
def test_any_other_code_is_unexpected_as_published(code: int) -> None:
    assert row(PUBLISHED, OPEN, code, "server").reader == f"UnexpectedClosure: {code}"


def test_a_lost_connection_is_nobodys() -> None:
    assert row(LAB, OPEN, 1006, "network", GONE).reader == "ConnectionLost: network"


def test_our_own_close_leaves_the_reader_waiting_and_tells_the_sender() -> None:
    found = row(LAB, OPEN, 1000, "us")

    assert (found.reader, found.sender) == ("nothing", "ClosedHere: us")


def test_our_own_close_in_the_setup_is_told_to_who_connects() -> None:
    assert row(LAB, SETUP, 1000, "us").connect == "ClosedHere: us"


def test_a_close_that_the_servers_crosses_is_ours() -> None:
    found = row(LAB, OPEN, 1011, "us", CROSSED)

    assert (found.reader, found.sender) == ("nothing", "ClosedHere: us")


def test_as_published_the_servers_code_decides_what_the_reader_is_told_of_a_close_that_it_crosses() -> None:
    assert row(PUBLISHED, OPEN, 1011, "us", CROSSED).reader == "UnexpectedClosure: 1011"
    assert row(PUBLISHED, OPEN, 1001, "us", CROSSED).reader == "nothing"


def test_closes_that_do_not_cross_are_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's answer to our own close would pass for a close that crosses it."""
    monkeypatch.setattr(closes, "cross", lambda _: "hello")
    monkeypatch.setattr(closes, "ends", lambda: [End(OPEN, CROSSED, Party.US, 1011)])

    with pytest.raises(InvalidRun, match="did not cross ours"):
        asyncio.run(rows([LAB]))


def test_a_connection_that_its_machine_has_no_room_for_is_no_end_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_room(_: WebSocketWire) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(WebSocketWire, "open", no_room)
    with pytest.raises(OSError, match="Too many open files"):
        asyncio.run(rows([LAB]))


def test_an_end_that_is_told_to_nobody_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of a client that waits for TCP's end behind a close frame."""
    monkeypatch.setattr(closes, "TOLD_S", 0.05)
    monkeypatch.setattr(closes, "say", lambda _: "silence")
    monkeypatch.setattr(closes, "ends", lambda: [End(OPEN, KEPT, Party.SERVER, 1011)])

    (found,) = asyncio.run(rows([LAB]))

    assert (found.reader, found.is_closed, found.ok) == ("nothing", False, False)
