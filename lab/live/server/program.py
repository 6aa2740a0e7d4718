"""The command line of the session server."""

import argparse
import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.core.errors import LabError, UsageError
from lab.live.server.serving import Options, Serving, serving
from lab.live.server.shell import Tell
from lab.live.server.teller import Teller
from lab.live.session import profile as profiles
from lab.live.session.profile import Profile
from lab.programs.report import say

PORT = 8765

ANOTHER = "end what has the port, or name another one (0: a free one) by --port, --tls-port or --status-port"
OTHER = "name an address of this machine by --host, and files that can be written"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.live.server", description=__doc__)
    made.add_argument("--host", help="address to listen on (all of them)")
    made.add_argument("--port", type=int, default=PORT, metavar="P", help="for ws; 0 takes a free one")
    made.add_argument("--tls-port", type=int, metavar="P", help="for wss; 0 takes a free one; needs --ca")
    made.add_argument("--status-port", type=int, metavar="P", help="for HTTP: /status, /healthz, /lapse, /close")
    made.add_argument("--profile", default=profiles.DEFAULT.name, choices=list(profiles.PROFILES), metavar="NAME")
    made.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="change the profile")
    made.add_argument("--seed", type=int, metavar="N", help="draw the same numbers each time")
    made.add_argument("--ca", type=Path, metavar="DIR", help="folder of the authority that signs for wss")
    made.add_argument("--name", action="append", default=[], help="further name or address for the certificate")
    made.add_argument("--bookings", type=Path, metavar="FILE", help="the assistant's bookings, for the status")
    made.add_argument("--log", type=Path, metavar="FILE", help="every frame, a JSON object per line")
    return made


def options_of(given: argparse.Namespace) -> Options:
    """What the command line asks for.

    Raises:
        UsageError: a change of the profile that makes no sense, or wss without a folder.
    """
    if given.tls_port is not None and given.ca is None:
        raise UsageError("--tls-port needs certificates.", fix="add --ca DIR")
    return Options(
        profile=changed(given.profile, given.set),
        host=given.host,
        port=given.port,
        tls_port=given.tls_port,
        status_port=given.status_port,
        status_host=given.host,
        ca=given.ca,
        names=tuple(given.name),
        seed=given.seed,
        log=given.log,
        bookings=given.bookings,
    )


def changed(name: str, changes: Sequence[str]) -> Profile:
    """A profile by its name, with some fields set.

    Args:
        name: See ``profiles.PROFILES``.
        changes: FIELD=VALUE each.

    Raises:
        UsageError: there is none of that name, or a change makes no sense.
    """
    pairs = [text.partition("=") for text in changes]
    for field, mark, _ in pairs:
        if not mark:
            raise UsageError(f"--set {field} has no value.", fix="write FIELD=VALUE")
    return profiles.find(name).with_(**{field: value for field, _, value in pairs})


async def run(options: Options, *, tell: Tell, ready: Callable[[Serving], None]) -> None:
    """Serve until ``quit`` comes on standard input, or SIGTERM or SIGINT; ``status`` there is answered by an event.

    Args:
        options: What to serve.
        tell: Told every event.
        ready: Called once it listens.

    Raises:
        UsageError: a port is taken, or a file cannot be opened.
    """
    from lab.live.server.parts import scripted

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        async with serving(options, scripted(), tell=tell) as made:
            ready(made)
            with _commands({b"quit": ended.set, b"status": lambda: tell("status", **_count(made))}):
                await ended.wait()
    except OSError as error:
        taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        raise UsageError(f"The server cannot begin: {error}", fix=ANOTHER if taken else OTHER) from error


@contextlib.contextmanager
def _commands(acts: Mapping[bytes, Callable[[], None]]) -> Iterator[None]:
    """Obey these words on standard input, unless a person types there; its end says nothing."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno() if sys.stdin is not None and not sys.stdin.closed else -1

    def read() -> None:
        words = os.read(descriptor, 4096).split()
        for word in words:
            acts.get(word, _nothing)()
        if not words:
            loop.remove_reader(descriptor)

    if descriptor < 0 or os.isatty(descriptor):
        yield
        return
    try:
        loop.add_reader(descriptor, read)
    except PermissionError:
        # A file, or nothing at all: no command can come.
        yield
        return
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


def _nothing() -> None:
    """A word that means nothing here."""


def _count(made: Serving) -> dict[str, Any]:
    """How many sessions and connections there are, as the sessions themselves have it."""
    house = made.shell.house.status(now=made.shell.clock.now())
    states = {session.id: session.state for session in house.sessions}
    return {"connections": house.connections, "counted": house.counted, "sessions": states}


def listening(made: Serving) -> None:
    """Say where it listens, and which authority its clients have to trust."""
    ca = None if made.authority is None else str(made.authority)
    say("listening", ws=made.port("ws"), wss=made.port("wss"), status=made.status_port, ca=ca)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server; its exit status."""
    options = parser().parse_args(argv)
    try:
        with Teller() as tell:
            asyncio.run(run(options_of(options), tell=tell, ready=listening))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
