"""Asks an HTTP server five times a second on one connection; where no answer comes in time, on another one."""

import http.client
import os
import sys
import time


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


host, _, port = os.environ["SERVER"].rpartition(":")
patience_s = float(os.environ.get("PATIENCE", "1"))
while True:
    connection = http.client.HTTPConnection(host, int(port), timeout=patience_s or None)
    try:
        while True:
            connection.request("GET", "/")
            say(f"answer {connection.getresponse().read().decode().strip()}")
            time.sleep(0.2)
    except OSError as error:
        say(f"lost {type(error).__name__} {error}")
        connection.close()
        time.sleep(0.1)
