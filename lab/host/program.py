"""A job with a scripted agent, a simulator of its user, or a relay, as a program; see ``lab.host.programs``."""

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence

from lab.core.errors import LabError, UsageError
from lab.host.programs.job import run_job
from lab.host.programs.options import parser
from lab.host.programs.simulator import run_simulator
from lab.host.shell.relay import serve
from lab.host.shell.websocket import NotWebSocket

INTERRUPTED = 130
"""As ``lab`` has it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the three; its exit code."""
    given = parser().parse_args(argv)
    try:
        if given.role == "relay":
            serve(given.host, {"host": given.host_port, "remote": given.remote_port}, given.program)
            return 0
        return asyncio.run((run_job if given.role == "job" else run_simulator)(given))
    except LabError as error:
        return _fail(error)
    except OSError as error:
        return _fail(_begun(given, error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _begun(given: argparse.Namespace, error: OSError) -> UsageError:
    """Why it could not begin."""
    begin = f"The {given.role} cannot begin:"
    match error:
        case socket.gaierror():
            return UsageError(f"{begin} {given.host} is no host: {error.strerror}.", fix="name one that resolves")
        case ConnectionRefusedError():
            return UsageError(
                f"{begin} nobody listens on {given.host}, port {given.port}.",
                fix="start the job first, or name the address and the port on which it listens",
            )
        case NotWebSocket():
            return UsageError(f"{begin} {error}", fix="have --websocket at both sides, or at neither")
        case _:
            why = error.strerror or str(error)
            return UsageError(f"{begin} {why.rstrip('.')}.", fix="name another address or port")


def _fail(error: LabError) -> int:
    sys.stderr.write(f"{error}\n")
    return error.exit_code
