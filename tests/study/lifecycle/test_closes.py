import asyncio
import functools

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, Variant
from lab.study.lifecycle.closes import CODES, CloseRow, as_json, rows


@functools.cache
def table(variant: Variant) -> list[CloseRow]:
    return asyncio.run(rows([variant]))


def row(variant: Variant, phase: str, code: int, by: str) -> CloseRow:
    (found,) = [each for each in table(variant) if (each.phase, each.code, each.by) == (phase, code, by)]
    return found


def test_every_code_of_a_server_is_in_the_table_in_both_phases() -> None:
    found = {(each.phase, each.code) for each in table(LAB) if each.by == "server"}

    assert found == {(phase, code) for phase in ("setup", "open") for code in CODES}


def test_the_labs_session_tells_every_end_right() -> None:
    assert [each for each in as_json(table(LAB)) if not each["ok"]] == []


def test_a_servers_1001_is_the_servers() -> None:
    assert row(LAB, "open", 1001, "server").reader == "ClosedByServer: server 1001"


def test_a_servers_1001_is_told_to_nobody_as_published() -> None:
    found = row(PUBLISHED, "open", 1001, "server")

    assert (found.reader, found.sender, found.is_closed, found.ok) == ("nothing", "no error", False, False)


def test_a_setup_refused_with_1001_is_no_error_as_published() -> None:
    assert row(PUBLISHED, "setup", 1001, "server").connect == "no error"


@pytest.mark.parametrize("code", [code for code in CODES if code != 1001])
def test_any_other_code_is_unexpected_as_published(code: int) -> None:
    assert row(PUBLISHED, "open", code, "server").reader == f"UnexpectedClosure: {code}"


def test_a_lost_connection_is_nobodys() -> None:
    assert row(LAB, "open", 1006, "network").reader == "ConnectionLost: network"


def test_our_own_close_leaves_the_reader_waiting_and_tells_the_sender() -> None:
    found = row(LAB, "open", 1000, "us")

    assert (found.reader, found.sender) == ("nothing", "ClosedHere: us")
