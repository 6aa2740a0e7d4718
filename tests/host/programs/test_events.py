"""Each program lists, at its head, what it says: every event, and what comes with it."""

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from lab.host.programs import common, job, simulator
from lab.host.shell import relay
from lab.programs import relay as carrying

ROW = re.compile(r"([a-z_]+(?:, [a-z_]+)*)(?:  |$)")

NOTES = {("note", "kind"), ("state", None)}
"""Listed where the machines' notes are; a simulator's machine has no states."""


def said(module: ModuleType) -> Iterator[tuple[str, str | None]]:
    """Each event that a module says, and each of its fields: None once, and ``**`` is another place's to list."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
            event = node.args[0]
            if isinstance(event, ast.Constant) and isinstance(event.value, str):
                yield event.value, None
                yield from ((event.value, word.arg) for word in node.keywords if word.arg is not None)


def rows(module: ModuleType) -> dict[str, str]:
    """Each event's row of the table, with its continuation."""
    _, _, table, *_ = re.split(r"^=+ =+$", inspect.getdoc(module) or "", flags=re.MULTILINE)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in table.strip().splitlines():
        if (begin := ROW.match(line)) is not None:
            names = begin[1].split(", ")
        for name in names:
            found[name] = found.get(name, "") + line
    return found


@pytest.mark.parametrize(
    ("module", "with_"), [(job, common), (simulator, common), (relay, carrying)], ids=["job", "simulator", "relay"]
)
def test_every_event_is_listed_with_all_that_it_has(module: ModuleType, with_: ModuleType) -> None:
    listed = rows(module)
    events = {*said(module), *said(with_)} - NOTES
    assert len(events) > 10
    assert {
        (event, word)
        for event, word in events
        if event not in listed or (word is not None and f"``{word}``" not in listed[event])
    } == set()
