"""Runs one of the three: a job with a scripted agent, a simulator of its user, or a relay."""

import asyncio
import sys
from collections.abc import Sequence

from lab.core.errors import LabError
from lab.host.programs.common import unread
from lab.host.programs.job import run_job
from lab.host.programs.options import parser
from lab.host.programs.relay import run_relay
from lab.host.programs.simulator import run_simulator

INTERRUPTED = 130
"""As ``lab`` has it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the three; its exit code.

    Raises:
        SystemExit: the command line cannot be, or nobody reads what is said.
    """
    given = parser().parse_args(argv)
    try:
        if given.role == "relay":
            return run_relay(given)
        return asyncio.run((run_job if given.role == "job" else run_simulator)(given))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except BrokenPipeError:
        unread()
    except KeyboardInterrupt:
        return INTERRUPTED
