#!/usr/bin/env python3
"""Claim: the kernel's error after a silent loss is delivered once; the next read looks like a clean close.

A client sends into the hole and waits. Its first ``recv`` raises ETIMEDOUT, its second one returns ``b""``, which every
program takes for "the server has closed". Code that retries a failed read, or reads in another place, reports the wrong
thing.

    python repro/error_once.py        ten seconds, no root needed
"""

import sys
import tempfile
from pathlib import Path

from lab import blackhole

SERVER = """
import socket
listener = socket.create_server(("", 5000))
connection, _ = listener.accept()
while data := connection.recv(4096):
    connection.sendall(data)
"""

CLIENT = """
import socket, time
connection = socket.create_connection(("server", 5000))
for _ in range(4):
    connection.sendall(b"ping")
    connection.recv(4096)
    time.sleep(0.5)
time.sleep(0.5)                      # the flow goes dark in here
connection.sendall(b"into the hole")
for attempt in (1, 2):
    try:
        print("read", attempt, "returned", connection.recv(4096), flush=True)
    except OSError as error:
        print("read", attempt, "raised", error.errno, error.strerror, flush=True)
"""


def main() -> int:
    """Run it, show what the client saw, and say whether the claim holds."""
    folder = Path(tempfile.mkdtemp(prefix="error-once-"))
    record = blackhole(
        server=[sys.executable, "-c", SERVER],
        client=[sys.executable, "-u", "-c", CLIENT],
        port=5000,
        profile="fast",
        cut_after_s=2.0,
        noticed=r"read 1",
        out=folder,
    )
    gave_up_s = record.observation.client.gave_up_s
    when = "did not give up" if gave_up_s is None else f"gave up at {gave_up_s:.2f} s"
    print(f"{record.outcome.value}: dark at 0 s, kernel {when}; everything is in {folder}/")
    reads = lines_of(folder / "client.log")
    print("\n".join(reads))
    print(f"everything of the run is in {folder}/")
    first, second = [*reads, "", ""][:2]
    claim = "raised" in first and "returned b''" in second
    return 0 if record.outcome.value == "confirmed" and claim else 1


def lines_of(log: Path) -> list[str]:
    """The client's lines, without the instant and the stream in front."""
    return [line.split(" ", 2)[2] for line in log.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
