"""A client session with a life of its own: ``LiveSession`` connects, sends, is read, resumes, closes, and is released.

It follows the system that firebase-ios-sdk's pull request 17045 describes, re-built from that description: a session
that the application owns, a service with a stream of responses and two tasks, a socket with a recorded end. What that
system did wrong is kept as data (``variant``), so that one code base shows the defect and the repair::

    variant     which rules a session follows: as published, with the published repair, the lab's own
    endings     who ended a connection, and the errors that say so
    stream      what came and is not read yet; ends at most once, and can be opened again
    wire        the port: a WebSocket that can be left without an event loop
    websocket   the same on websockets
    watch       a watchdog for one connection, for whoever asks for it
    outgoing    messages that wait to be written
    socket      receives frames, and records the first end (or the last one, as published)
    attempts    the setup and its answer; how long a session that was closed is asked for again
    service     connects, queues sends, reads; its tasks hold it, and it never holds its session
    session     LiveSession
    endpoints   four servers: the developer and the agent-platform endpoint, each with an older and a newer model
    peer        a server that ends a session as it is told, for the table of close codes
    leaver      a program that ends with its sessions open
    releaser    a program that lets go of its session and goes on
    holder      a program that holds its session and does as it is told
"""

from lab.live.lifecycle.endings import (
    ClosedByServer,
    ClosedHere,
    Closure,
    ConnectionLost,
    NotConnected,
    Party,
    SessionError,
    SetupRefused,
    UnexpectedClosure,
)
from lab.live.lifecycle.session import LiveSession
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.variant import LAB, PUBLISHED, REPAIRED, VARIANTS, Variant
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import SessionResumption, Setup
from lab.live.recovery.liveness import Patience

__all__ = [
    "LAB",
    "PUBLISHED",
    "REPAIRED",
    "VARIANTS",
    "ClosedByServer",
    "ClosedHere",
    "Closure",
    "ConnectionLost",
    "LiveSession",
    "NotConnected",
    "Party",
    "Patience",
    "SessionError",
    "SessionResumption",
    "Setup",
    "SetupRefused",
    "Stream",
    "UnexpectedClosure",
    "Variant",
    "WebSocketWire",
]
