import asyncio
from dataclasses import replace

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


def test_a_row_is_plain_data() -> None:
    assert rules.as_json(measured())[0]["profile"] == QUICK.name
