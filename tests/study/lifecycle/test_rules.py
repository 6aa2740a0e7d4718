import asyncio
from dataclasses import replace
from typing import Any

import pytest

from lab.live.lifecycle import LiveSession
from lab.live.session.profile import Handles, OldCall
from lab.study.lifecycle import rules
from lab.study.lifecycle.rules import RulesRow
from tests.study.lifecycle.scenes import HURRIED

QUICK = replace(HURRIED, server=HURRIED.server.with_(call_s=0.05, announce_s=0.05))
OTHER = replace(
    QUICK, server=QUICK.server.with_(name="other", handles=Handles.MANY.value, old_call=OldCall.IGNORE.value)
)


def measured() -> tuple[RulesRow, RulesRow]:
    one, other = asyncio.run(rules.rows([QUICK, OTHER]))
    return one, other


def test_each_server_keeps_to_its_rules() -> None:
    one, other = measured()

    assert (one.handles, one.without, one.old_call, one.ok) == (1, 0, "accepted", True)
    assert (other.handles, other.without, other.old_call, other.ok) == (1, 1, "ignored", True)
    assert one.version == "v1beta"


def test_a_server_that_does_something_else_is_wrong() -> None:
    """Rules that nobody looks at would all pass."""
    told = replace(OTHER, server=QUICK.server)  # what is asked of it, and what it does
    served = replace(QUICK, server=OTHER.server)

    assert rules.as_predicted(QUICK, without=0, old_call="accepted")
    assert not rules.as_predicted(told, without=1, old_call="accepted")
    assert not rules.as_predicted(served, without=1, old_call="accepted")
    assert not rules.as_predicted(served, without=0, old_call="ignored")
    assert not rules.as_predicted(QUICK, without=0, old_call="neither")


def answering(answer: Any, monkeypatch: pytest.MonkeyPatch) -> RulesRow:
    """What is found where a session answers the call of its former connection in this way."""
    monkeypatch.setattr(LiveSession, "send_tool_responses", answer)
    (found,) = asyncio.run(rules.rows([QUICK]))
    return found


def test_a_connection_that_ends_at_the_late_result_has_not_accepted_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def abort(session: LiveSession, _: object) -> None:
        session._service._socket._wire._connection.transport.abort()  # type: ignore[union-attr]

    found = answering(abort, monkeypatch)

    assert (found.old_call, found.ok) == ("neither", False)


def test_a_model_that_was_told_nothing_does_not_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what it says by itself would pass for its word on the result."""

    async def say_nothing(_: LiveSession, __: object) -> None:
        monkeypatch.setattr(rules, "STEP_S", 1.0)

    assert answering(say_nothing, monkeypatch).old_call == "neither"


def test_a_row_is_plain_data() -> None:
    assert rules.as_json(measured())[0]["profile"] == QUICK.name
