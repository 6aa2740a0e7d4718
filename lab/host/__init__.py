"""Hosts that outlive their sessions: a session host, its remote, the job that owns it and the simulator that drives it.

::

    protocol/   the message set of livekit-agents 1.8.9 and ``session_closed``; frames; octets
    machine/    pure: the lives of a host, a job and a remote, as tables and machines; variants with a defect each
    shell/      the same on asyncio, over framed TCP and over WebSocket; a scripted agent, a simulator;
                a relay for a host and a remote that both connect
    tables/     what packet loss has no part in: how an end is told, a host without a session, the end of a simulation
    programs/   what ``python -m lab.host`` runs: a job, a simulator and a relay as programs

A host serves one remote over one transport. The job owns the host of its room; sessions attach to it and detach from
it. A session in another room has a host of its own.

What a program of one's own needs can be had from here: ``from lab.host import SessionHost, transport``.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.host.machine.commands import Outcome
    from lab.host.machine.misuse import AlreadyRegistered, HostOver, Misuse, NotStarted, SessionOver
    from lab.host.machine.reasons import EndCause, Ending
    from lab.host.machine.remote import Watch
    from lab.host.protocol import messages
    from lab.host.shell import transport, websocket
    from lab.host.shell.agent import ScriptedAgent
    from lab.host.shell.failures import NotTold, RequestFailed
    from lab.host.shell.host import SessionHost
    from lab.host.shell.job import Job
    from lab.host.shell.remote import RemoteSession
    from lab.host.shell.session import BaseSession, Listener, Session
    from lab.host.shell.simulator import Simulation, simulate, spoken

_PLACES = {
    "lab.host.machine.commands": ("Outcome",),
    "lab.host.machine.misuse": ("AlreadyRegistered", "HostOver", "Misuse", "NotStarted", "SessionOver"),
    "lab.host.machine.reasons": ("EndCause", "Ending"),
    "lab.host.machine.remote": ("Watch",),
    "lab.host.shell.agent": ("ScriptedAgent",),
    "lab.host.shell.failures": ("NotTold", "RequestFailed"),
    "lab.host.shell.host": ("SessionHost",),
    "lab.host.shell.job": ("Job",),
    "lab.host.shell.remote": ("RemoteSession",),
    "lab.host.shell.session": ("BaseSession", "Listener", "Session"),
    "lab.host.shell.simulator": ("Simulation", "simulate", "spoken"),
}
_MODULES = {
    "messages": "lab.host.protocol.messages",
    "transport": "lab.host.shell.transport",
    "websocket": "lab.host.shell.websocket",
}

__all__ = [
    "AlreadyRegistered",
    "BaseSession",
    "EndCause",
    "Ending",
    "HostOver",
    "Job",
    "Listener",
    "Misuse",
    "NotStarted",
    "NotTold",
    "Outcome",
    "RemoteSession",
    "RequestFailed",
    "ScriptedAgent",
    "Session",
    "SessionHost",
    "SessionOver",
    "Simulation",
    "Watch",
    "messages",
    "simulate",
    "spoken",
    "transport",
    "websocket",
]


if not TYPE_CHECKING:  # A type checker would take any name for one that there is.

    def __getattr__(name: str) -> object:
        # Imported at their first use (PEP 562): whoever needs a machine alone need not have the shells.
        if name in _MODULES:
            return importlib.import_module(_MODULES[name])
        for place, names in _PLACES.items():
            if name in names:
                return getattr(importlib.import_module(place), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
