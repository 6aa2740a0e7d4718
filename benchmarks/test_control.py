"""The control API: from a request to the cut that it asked for, beside the commit itself, and the service's start."""

import http.client
import itertools
import json
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.figures import Figure, milliseconds, ratio
from lab.control.address import Address
from lab.control.server import beside
from lab.core.fault import Fault
from lab.core.flow import Endpoint, FourTuple
from lab.testbed.netns import NetnsTestbed, open_testbed
from tests.control.unix import UnixConnection
from tests.engines import require_engine, require_lab_image

ROUNDS = 30
GOAL_S = 0.05
"""From the request to the cut of a flow that was never heard of, the first request after the start too."""

TOKEN = secrets.token_hex(8)
_ports = itertools.count(20000)


@pytest.fixture(scope="module")
def testbed() -> Iterator[NetnsTestbed]:
    """One for all of them."""
    with open_testbed() as testbed:
        yield testbed


def flow() -> FourTuple:
    """One that nobody has named before."""
    return FourTuple(Endpoint("192.0.2.10", next(_ports)), Endpoint("198.51.100.20", 5000))


@pytest.mark.parametrize("kind", ["Unix socket", "TCP on loopback"])
def test_a_cut_over_http_is_soon(testbed: NetnsTestbed, kind: str, figures: Callable[[Figure], None]) -> None:
    """A new connection for each request, as curl makes it; the flow's rules are built by the request."""
    with tempfile.TemporaryDirectory() as folder:
        place = Address(path=Path(folder, "c.sock")) if kind == "Unix socket" else Address("127.0.0.1", 0)
        with beside(testbed.router, place, Path(folder), token=TOKEN) as (_, where):
            turns = [(_cut(where, flow()), _commit(testbed, Fault(flow()))) for _ in range(ROUNDS)]
    ours, commits = [ours for ours, _ in turns], [commit for _, commit in turns]
    worst = max(ours)
    figures(
        Figure(
            f"cut over HTTP, {kind}, from the request",
            f"{milliseconds(ours)}, the first {ours[0] * 1000:.3g} ms, the worst {worst * 1000:.3g} ms",
            f"build and commit by `testbed.router.cut`: {milliseconds(commits)}",
            f"{1 / ratio(commits, ours):.1f} times as long",
            f"the first and the worst within {GOAL_S * 1000:.0f} ms",
            worst <= GOAL_S,
        )
    )


def test_a_cut_in_a_container_is_soon(figures: Callable[[Figure], None]) -> None:
    """By a port on loopback; a new connection for each request, as curl makes it."""
    from lab.testcontainers import Router, routed_network

    with require_engine() as engine:
        require_lab_image(engine)
    with routed_network() as left, routed_network() as right, Router(left, right) as router:
        place = urlsplit(router.url)
        assert place.hostname is not None
        where = Address(place.hostname, place.port or 0)
        ours = [_cut(where, flow(), router.token) for _ in range(ROUNDS)]
    worst = max(ours)
    figures(
        Figure(
            "cut over HTTP, router's container, port on loopback, from the request",
            f"{milliseconds(ours[1:])}, the first {ours[0] * 1000:.3g} ms, the worst {worst * 1000:.3g} ms",
            "the same over HTTP in the embedded backend: the rows above",
            "see there",
            f"the first within {GOAL_S * 1000:.0f} ms",
            ours[0] <= GOAL_S,
        )
    )


def test_the_service_starts_soon(testbed: NetnsTestbed, figures: Callable[[Figure], None]) -> None:
    """``python -m lab.control.serve`` in a router, until it answers, against a Python that does nothing."""
    ours, ends, theirs = [], [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "c.sock")
            began = time.monotonic()
            program = testbed.router.spawn([sys.executable, "-m", "lab.control.serve", "--listen", f"unix:{path}"])
            _until_it_answers(path)
            ours.append(time.monotonic() - began)
            program.wait_for_line("capture-started", 20)
            began = time.monotonic()
            program.send_signal(15)
            assert program.wait(10) == 0
            ends.append(time.monotonic() - began)
        began = time.monotonic()
        assert testbed.router.spawn([sys.executable, "-c", ""]).wait(10) == 0
        theirs.append(time.monotonic() - began)
    figures(
        Figure(
            "control service, from its start to its first answer",
            milliseconds(ours),
            f"a Python that does nothing: {milliseconds(theirs)}",
            f"{ratio(ours, theirs):.0f} times as long",
        )
    )
    figures(
        Figure(
            "control service, from SIGTERM to its end",
            milliseconds(ends),
            f"a Python that does nothing: {milliseconds(theirs)}",
            f"{ratio(ends, theirs):.1f} times as long",
            "within 2 s",
            max(ends) <= 2,
        )
    )


def _cut(where: Address, wanted: FourTuple, token: str = TOKEN) -> float:
    """Seconds from the request to the instant that the answer calls the cut."""
    connection = (
        http.client.HTTPConnection(where.host, where.port) if where.path is None else UnixConnection(where.path)
    )
    names = {"client": str(wanted.client), "server": str(wanted.server)}
    body = json.dumps({"flow": names, "must_exist": False})
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    asked_at = time.time()
    connection.request("POST", "/faults", body, headers)
    answer = json.loads(connection.getresponse().read())
    connection.request("DELETE", f"/faults/{answer['id']}", headers=headers)
    connection.getresponse().read()
    connection.close()
    return float(answer["cut_at"]) - asked_at


def _commit(testbed: NetnsTestbed, fault: Fault) -> float:
    asked_at = time.monotonic()
    took_s = testbed.router.cut(fault).done_at - asked_at
    testbed.router.heal(fault)
    testbed.router.forget(fault)
    return took_s


def _until_it_answers(path: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(path))
            except OSError:
                time.sleep(0.002)
                continue
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: lab\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
            return
    pytest.fail("it did not come up")
