"""The command line of a job, a simulator and a relay."""

import argparse
import math

from lab.core.duration import parse_duration
from lab.core.errors import UsageError
from lab.host.machine.job import SESSION_END_TIMEOUT_S
from lab.host.machine.remote import TIMEOUT_S
from lab.host.machine.variant import REPAIRED, VARIANTS

SCRIPT = {"book it": "It is booked.", "goodbye": "Goodbye."}
"""What the agent says to what."""

TURNS = tuple(SCRIPT)
PORT = 8770
CLOSE_TIMEOUT_S = SESSION_END_TIMEOUT_S
"""Of ``--await-close``: as long as a job's shutdown waits for its simulator."""

DESCRIPTION = """
A job with a scripted agent, a simulator of its user, or a relay. What they see they say as JSON lines.
A job listens for one simulator, and ends with it; the simulator connects, plays its turns, and asks for the verdict.
A relay joins a host and a remote that both connect.
"""
CODES = """
exit code: 0 the simulator has a verdict that says yes, the job's simulator was given one, the relay is over;
1 there is no verdict, or the simulator's says no; 2 usage, nobody there included; 130 interrupted;
141 nobody reads what it says.
Durations are seconds, or 500ms, 2s, 1m.
"""


def port(text: str) -> int:
    """A TCP port; 0 takes a free one."""
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= number <= 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text} is no port. Fix: give 0 to 65535")
    return number


def duration(text: str) -> float:
    """Seconds, 0 too."""
    try:
        return parse_duration(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def span(text: str) -> float:
    """Seconds, more than 0."""
    found = duration(text)
    if math.isclose(found, 0.0, abs_tol=1e-9):
        raise argparse.ArgumentTypeError(f"{text} is no time at all. Fix: give more than 0")
    return found


def parser() -> argparse.ArgumentParser:
    """The options of all three."""
    made = argparse.ArgumentParser(prog="python -m lab.host", description=DESCRIPTION, epilog=CODES)
    made.add_argument("--websocket", action="store_true", help="instead of framed TCP; the same at both sides")
    roles = made.add_subparsers(dest="role", required=True)
    _add_job(roles.add_parser("job", help="listen for a simulator", epilog=CODES))
    _add_simulator(roles.add_parser("simulator", help="connect to a job, and play its user", epilog=CODES))
    _add_relay(
        roles.add_parser(
            "relay", help="join a host and a remote that both connect, over whatever carrier", epilog=CODES
        )
    )
    return made


def _add_carrier(made: argparse.ArgumentParser) -> None:
    # Beside the one before the role, whose value stays where this is not given.
    made.add_argument("--websocket", action="store_true", default=argparse.SUPPRESS, help="instead of framed TCP")


def _add_address(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on (default %(default)s); under lab run, 0.0.0.0",
    )


def _add_job(job: argparse.ArgumentParser) -> None:
    _add_carrier(job)
    _add_address(job)
    job.add_argument("--port", type=port, default=PORT, help="0 takes a free one (default %(default)s)")
    job.add_argument(
        "--variant", choices=sorted(VARIANTS), default=REPAIRED.name, help="which defect it has (default %(default)s)"
    )
    job.add_argument("--hangs-up-after", metavar="TEXT", help="the turn after which the agent ends the call")
    job.add_argument(
        "--end-after", type=duration, metavar="S", help="the agent ends the call so long after the simulator came"
    )
    job.add_argument(
        "--session-end-timeout",
        type=duration,
        metavar="S",
        default=SESSION_END_TIMEOUT_S,
        help="how long a shutdown waits for the simulator (default %(default)g)",
    )
    job.add_argument(
        "--judging", type=duration, metavar="S", default=0.0, help="how long the verdict takes (default %(default)g)"
    )
    job.add_argument(
        "--stay", action="store_true", help="go on without a session when one has ended, until the simulator leaves"
    )
    job.add_argument(
        "--by-hand",
        action="store_true",
        help="obey lines: end (the session), start (another one, with --stay), shutdown (the job), status; "
        "the end of input is a shutdown",
    )


def _add_simulator(simulator: argparse.ArgumentParser) -> None:
    _add_carrier(simulator)
    simulator.add_argument("host", help="where the job is, or with --listen the address to listen on")
    simulator.add_argument("port", type=port, help="its port")
    simulator.add_argument(
        "--turn",
        action="append",
        metavar="TEXT",
        help=f"what the user says; several in order (default {' and '.join(map(repr, TURNS))}, none with --by-hand)",
    )
    simulator.add_argument(
        "--timeout", type=span, metavar="S", default=TIMEOUT_S, help="of a request (default %(default)g)"
    )
    simulator.add_argument(
        "--watch",
        type=span,
        nargs=2,
        metavar=("ASK_S", "LOST_S"),
        help="a watchdog: ask after so much silence, give up after so much more (default: none)",
    )
    simulator.add_argument("--await-close", action="store_true", help="before the verdict, wait for the session's end")
    simulator.add_argument(
        "--close-timeout",
        type=span,
        metavar="S",
        default=CLOSE_TIMEOUT_S,
        help="how long --await-close waits, and then asks all the same (default %(default)g)",
    )
    simulator.add_argument("--listen", action="store_true", help="wait for a host that connects by itself")
    simulator.add_argument(
        "--by-hand",
        action="store_true",
        help="each line is a turn, but for status; the end of input asks for the verdict. "
        "With --turn the lines are said beside those, which end the call",
    )


def _add_relay(relay: argparse.ArgumentParser) -> None:
    _add_address(relay)
    relay.add_argument(
        "--host-port",
        type=port,
        default=PORT,
        metavar="PORT",
        help="for the host; 0 takes a free one (default %(default)s)",
    )
    relay.add_argument(
        "--remote-port", type=port, default=PORT + 1, metavar="PORT", help="for the remote (default %(default)s)"
    )
    relay.add_argument(
        "program", nargs="*", metavar="PROGRAM", help="after --: started beside it, on its standard input and output"
    )
