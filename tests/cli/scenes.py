"""Rows as they should come out, and how ``lab live lifecycle`` prints them."""

import io

from rich.console import Console

from lab.cli.lifecycle_tables import shown
from lab.host.tables import Row as HostRow
from lab.host.tables.rows import Question
from lab.study.lifecycle.tables import Tables
from tests.study.lifecycle.scenes import predicted


def host(case: str, variant: str, transport: str, *, right: bool, defective: bool = False) -> HostRow:
    return HostRow(Question.WITHOUT_SESSION, case, variant, transport, "no active session", 0.01, right, defective)


TABLES = predicted()
HOSTS = [
    host(f"{request} before any session", "repaired", transport, right=True)
    for request in ("Ping", "RunInput")
    for transport in ("tcp", "websocket")
]
TOLD = "ended by participant_disconnected"
EVERY_HOST = [
    *(
        HostRow(Question.CLOSING, TOLD, *("repaired", transport, "PARTICIPANT_DISCONNECTED"), 0.01, True, False)
        for transport in ("tcp", "websocket")
    ),
    HostRow(Question.CLOSING, TOLD, *("released", "websocket", "not told"), 0.01, False, True, True),
    *HOSTS,
    HostRow(Question.FINALIZING, "the user's code fails", *("repaired", "tcp", "failed"), None, True, False),
]


def text(tables: Tables, hosts: list[HostRow], width: int) -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=False)
    for part in shown(tables, hosts):
        out.print(part)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()
