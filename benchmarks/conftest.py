"""Collects the figures of all benchmarks, prints them as one table, and writes docs/bench.md where asked to."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figure, machine, table

FIGURES = pytest.StashKey[list[Figure]]()
MACHINE = pytest.StashKey[str]()

TEXT = """# What it costs

Every figure stands beside one that was measured in the same run, in turns where that is possible: a machine's speed and
its load are no property of the lab. Medians, with the middle half of the measurements in brackets.

`make bench` measures all of it and prints this table; `make bench BENCH_OUT=docs/bench.md` writes this page. It takes
ten to fifteen minutes, most of them tshark's and the study's with real waits (`-k "not real"` leaves those out).
Without an engine and the lab's images (`lab image build`) the rows about containers are missing.

Measured on: {machine} when it began.

{table}

- The hand-written script is `benchmarks/by_hand.sh`: the same namespaces, links, addresses and routes of both families,
  offloads and sysctls, by as few processes as iproute2 allows. It starts no processes in the namespaces, makes no names
  resolve, and nothing removes what it made if it is killed. The lab's testbed has all that, which is why its end alone
  takes longer: its processes have to be gone when `close` returns. Its beginning is over when every node has answered.
- The other one is `benchmarks/by_hand_docker.sh`: the same containers and networks with the same options, side
  containers included, by the `docker` command, each started as soon as what it needs is there. Its nodes sleep: no
  routes, no names, no offloads, and nothing waits for an answer or removes what is left if it is killed. The lab's
  beginning is over when every node has answered, and what stands beside a user's program too. The lab's reaper, one
  container for all testbeds of a process, starts with the first testbed and is counted there.
- A cut is timed from the call to the return of the commit, after which nothing of the flow passes; the two commands
  from the start of the first to the end of the second. In the firewall's process nothing but reading the table lies
  before the commit; by `testbed.router.cut` one message to that process does, which on a busy machine waits its turn.
- The bulk flow fills the path, with two processors for its two ends, the router and the capture. What the capture then
  loses the kernel counts; it is reported and makes a run INVALID. A larger ring (`ring_bytes`) loses less or nothing.
  The flows of ordinary runs, a few segments per second, lose none.
- A death is dated to half the interval between the last look that saw the socket and the first that did not.
- The assistants' sessions are the lab's own links with their watchdogs (a ping every 0.5 s, lost after 2 s), all in one
  process beside the server's. A tenth of them speak all the time, in real time, with answers and bookings; the others
  send pings alone, as most do at any time. A deadline is an instant at which a watchdog wants to look; it is late by
  what the clients' loop is late by. How late the server's is shows in the pongs; slow pongs make a watchdog patient.
  When the server is stopped, which looks as a frozen path does, each watchdog has a last deadline to meet.
- In the search for how many one server holds, a hundred sessions have watchdogs, and the others are ready-made frames,
  so that the server is full first. It holds them while 99 % of deadlines and of pongs are within 0.1 s of theirs and
  no watchdog is alarmed.
- Neither the lab's server nor its own client negotiates permessage-deflate; google-genai offers it, and is answered
  without. Its cost is measured with websockets' own codec and settings.
- Speech is recognised in another process, since pocketsphinx keeps Python's lock while it decodes; an utterance that
  was heard before is remembered.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the page goes."""
    parser.addoption("--figures", type=Path, metavar="FILE", help="write the table of figures to a Markdown file")


def pytest_configure(config: pytest.Config) -> None:
    """Look at the machine before the benchmarks load it."""
    config.stash[FIGURES] = []
    config.stash[MACHINE] = machine()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[[Figure], None]:
    """Takes a figure of this test."""
    command = f"pytest benchmarks/{request.path.name}"

    def add(figure: Figure) -> None:
        request.config.stash[FIGURES].append(replace(figure, command=command))

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and write the page."""
    figures = config.stash[FIGURES]
    if not figures:
        return
    terminalreporter.section("figures")
    terminalreporter.line(f"Measured on: {config.stash[MACHINE]}.\n")
    terminalreporter.line(table(figures))
    if path := config.getoption("figures"):
        path.write_text(TEXT.format(machine=config.stash[MACHINE], table=table(figures)), encoding="utf-8")
        terminalreporter.line(f"\nWritten to {path}.")
