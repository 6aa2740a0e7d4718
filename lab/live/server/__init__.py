"""Sessions over WebSocket: ``python -m lab.live.server``.

The shell around ``lab.live.session``: it reads frames, tells how connections end, and does what the sessions want::

    door          listening sockets, and how many handshakes are under way at once
    line          one WebSocket: whole messages in, bounded writes out, how it ended
    shell         between the lines and the house of sessions
    ticker        wakes the house in session time
    ear           recognition of speech, beside the event loop and in another process
    teller        events on standard output, whether or not somebody reads
    framelog      every frame and every note in a file
    certificates  an authority and a certificate of the server's own
    status        the status port: what the sessions are, and POST /lapse and /close
    serving       all of it together
    program       the command line

Importing this package takes the standard library alone; running it takes websockets, cryptography for wss, and
pocketsphinx to understand speech.
"""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server until ``quit`` comes on standard input, or SIGTERM or SIGINT; its exit status."""
    from lab.live.server.program import main as run

    return run(sys.argv[1:] if argv is None else argv)
