#!/usr/bin/env python3
"""Claim: a client that only waits for news is never told that its path is dark; keepalive is what tells it.

Two clients of the same server, one without and one with SO_KEEPALIVE (2 s idle, 1 s interval, 3 probes). Both lose
their path while they wait in ``recv``. The first one still waits when the watch ends, and would for ever; the second
one gets ETIMEDOUT after some five seconds.

    python repro/reader_never_told.py     half a minute, no root needed
"""

import sys

from lab import blackhole
from lab.report.record import Record

SERVER = """
import socket, time
listener = socket.create_server(("", 5000))
connection, _ = listener.accept()
connection.recv(4096)
connection.sendall(b"welcome")
time.sleep(3600)
"""

CLIENT = """
import socket, sys
connection = socket.create_connection(("server", 5000))
if sys.argv[1] == "keepalive":
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 2), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3)):
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
connection.sendall(b"hello")
while True:
    try:
        data = connection.recv(4096)
    except OSError as error:
        sys.exit(f"told: {error.strerror}")
    print("got", data, flush=True)
"""


def wait_in_the_dark(keepalive: str) -> Record:
    """One client, cut off while it waits."""
    return blackhole(
        server=[sys.executable, "-c", SERVER],
        client=[sys.executable, "-u", "-c", CLIENT, keepalive],
        port=5000,
        noticed="told",
        watch_s=10.0,
    )


def main() -> int:
    """Run both, and say whether the claim holds."""
    without, with_keepalive = wait_in_the_dark("plain"), wait_in_the_dark("keepalive")
    for name, record in (("without", without), ("with", with_keepalive)):
        told_s = record.observation.client.noticed_s
        what = f"never told within {record.horizon_s:.1f} s" if told_s is None else f"told after {told_s:.2f} s"
        print(f"{name} keepalive ({record.outcome.value}): {what}")
    confirmed = all(record.outcome.value == "confirmed" for record in (without, with_keepalive))
    told = with_keepalive.observation.client.noticed_s is not None
    return 0 if confirmed and without.observation.client.never_told and told else 1


if __name__ == "__main__":
    sys.exit(main())
