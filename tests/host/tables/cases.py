"""One case of a table, over a carrier on which nobody waits long for what does not come."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from lab.host.machine.host import HostMachine
from lab.host.tables.stage import TCP

Got = TypeVar("Got")

DEADLINE_S = 20.0

HASTY = replace(TCP, request_s=0.05, session_end_s=0.05)
"""For what is known not to come; what has to come has the usual time."""


def done(case: Coroutine[Any, Any, Got]) -> Got:
    async def bounded() -> Got:
        async with asyncio.timeout(DEADLINE_S):
            return await case

    return asyncio.run(bounded())


def deaf_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that reads requests and does nothing, whichever defect it is said to have."""
    monkeypatch.setattr(HostMachine, "receive", lambda _self, _message: [])
