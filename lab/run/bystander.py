"""The second flow, which shares the path and must never notice: how it is started, and how it fared."""

import itertools
from collections.abc import Mapping

from lab.core.errors import Unsupported
from lab.core.fault import Scope
from lab.core.flow import Endpoint
from lab.core.retransmission import classify
from lab.run.findings import BystanderFinding
from lab.run.flowfinder import wait_for_listener
from lab.run.noticing import event_of, instant_of
from lab.run.patience import Patience
from lab.run.sides import COUNTERS, Side, by_flow
from lab.run.spec import RunSpec
from lab.run.watched import Watched
from lab.testbed.ports import Process, Testbed

PORTS = (40007, 40017)
"""The bystander's server port; the second one where the user's own server has the first."""

INTERVAL_S = 0.2

TIMEOUT_S = 10.0

RETRANSMITTED = COUNTERS["retransmissions"]


def bystander_port(server_port: int) -> int:
    """The port of its server, beside the user's own."""
    return next(port for port in PORTS if port != server_port)


def start_bystander(testbed: Testbed, spec: RunSpec, port: int, patience: Patience) -> Process:
    """Its server and its client, which has talked when this returns.

    Raises:
        Unsupported: it cannot talk, so no run could be trusted here.
    """
    # With the whole host dark the same family is dark too: the other one shares links, router and capture.
    ipv6 = spec.ipv6 != (spec.scope is Scope.HOST and spec.uplink is None)
    address = testbed.server.ipv6 if ipv6 else testbed.server.ipv4
    server = testbed.server.spawn_module("lab.programs.server", (str(port),))
    wait_for_listener(testbed.server, server, port, patience)
    client = testbed.client.spawn_module("lab.programs.client", (address, str(port), "--interval", str(INTERVAL_S)))
    try:
        client.wait_for_line(r'"event": ?"received"', TIMEOUT_S)
    except TimeoutError as error:
        raise Unsupported(f"The bystander flow never talked, so nothing here could be trusted: {error}") from error
    return client


def read_bystander(
    watched: Watched, sides: Mapping[str, Side], server_counters: Mapping[str, int] | None = None
) -> BystanderFinding:
    """How it fared, from its output and both captures.

    Args:
        watched: The run.
        sides: Both captures.
        server_counters: How far its server's counters moved, where that node is the bystander's alone: with an uplink
            no capture is of its link, and a copy whose original was lost there looks like one.
    """
    events = [e for e in map(event_of, watched.bystander.lines) if e is not None]
    answers = [instant_of(e) for e in events if e.get("event") == "received"]
    told = any(e.get("event") in ("error", "eof", "closed") for e in events)
    pauses = itertools.pairwise([*answers, watched.until])
    since = [after - before for before, after in pauses if after >= watched.cut.began_at]
    server = watched.testbed.server
    its = {Endpoint(address, watched.bystander_port) for address in (server.ipv4, server.ipv6)}
    lost = 0
    for side in sides.values():
        mine = [s for s in side.segments if its & {s.source, s.destination}]
        lost += sum(1 for segments in by_flow(mine).values() for c in classify(segments) if c.segment_class.is_copy)
    lost = max(lost, (server_counters or {}).get(RETRANSMITTED, 0))
    alive = bool(answers) and not told and watched.bystander.returncode is None
    return BystanderFinding(alive=alive, lost=lost, longest_gap_s=max(since, default=float("inf")))
