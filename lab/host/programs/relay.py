"""A relay as a program: ``lab.host.shell.relay`` has what it says."""

import argparse
import contextlib

from lab.host.programs.common import beginning
from lab.host.shell import relay


def run_relay(given: argparse.Namespace) -> int:
    """Join the two that come; the exit code.

    Raises:
        KeyboardInterrupt: an interrupt ended it.
    """
    with contextlib.ExitStack() as open_ones:
        with beginning(given):
            listeners = open_ones.enter_context(
                relay.listening(given.host, {"host": given.host_port, "remote": given.remote_port})
            )
        relay.serve(listeners, given.program)
    return 0
