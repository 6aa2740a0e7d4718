"""``lab serve``: a testbed to play with, and its control API, until Ctrl-C."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lab.control.address import Address
    from lab.testbed.ports import Process, Testbed

PORT = 5000
_LOOK_S = 0.5


def serve(
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen on TCP, with a token, such as 127.0.0.1:8474.")
    ] = None,
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Unix socket; one in the runtime folder where not given.")
    ] = None,
    profile: Annotated[str, typer.Option(help="linux, fast, study-server, study-server-fast or FILE.toml.")] = "fast",
    heartbeat: Annotated[
        str | None, typer.Option(metavar="T", help="Heal everything after so long without POST /heartbeat.")
    ] = None,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="Talk over IPv6.")] = False,
) -> None:
    """Serve the control API over a testbed in which two programs talk.

    A client that sends a line four times a second, a router and a server, in namespaces of their own. Other programs
    list, cut and heal their flows over HTTP; the lines to try are printed. A client that gives up is started again.
    Ctrl-C ends all of it.
    """
    import signal

    from lab.cli.output import console
    from lab.control import server
    from lab.core.duration import parse_duration
    from lab.core.errors import UsageError
    from lab.testbed.netns import open_testbed
    from lab.testbed.ports import TestbedSpec
    from lab.testbed.runtime import runtime_folder

    if listen is not None and socket is not None:
        raise UsageError("--listen and --socket were both given.", fix="give one of them")
    heartbeat_s = None if heartbeat is None else parse_duration(heartbeat)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with runtime_folder() as folder:
            where = _place(listen, socket, folder)
            token = None if where.unix else _token()
            with open_testbed(TestbedSpec(ipv6=ipv6)) as testbed:
                client = _start(testbed, profile)
                serving = server.beside(testbed.router, where, folder, token=token, heartbeat_s=heartbeat_s)
                with serving as (_, listening):
                    for line in _lines(listening, token):
                        # Not wrapped: it is there to be copied.
                        console.print(line, soft_wrap=True)
                    _keep_talking(testbed, client)
    except KeyboardInterrupt:
        console.print("Everything is healed and gone.")


def _place(listen: str | None, socket: Path | None, folder: Path) -> "Address":
    from lab.control import address

    if listen is not None:
        return address.parse(listen)
    return address.parse(f"unix:{socket or folder / 'control.sock'}")


def _token() -> str:
    import os
    import secrets

    from lab.control.serve import token_of

    return token_of(dict(os.environ)) or secrets.token_urlsafe(24)


def _start(testbed: "Testbed", profile: str) -> "Process":
    from lab.cli.options import find_profile
    from lab.run.arrange import apply_settings

    for node in (testbed.client, testbed.server):
        apply_settings(node, find_profile(profile), {})
    server = testbed.server.spawn_module("lab.programs.server", [str(PORT)])
    server.wait_for_line('"listening"', 10)
    return _start_client(testbed)


def _start_client(testbed: "Testbed") -> "Process":
    return testbed.client.spawn_module("lab.programs.client", ["server", str(PORT)])


def _keep_talking(testbed: "Testbed", client: "Process") -> None:
    """Say when the client ends, and start another."""
    from lab.cli.output import console

    while True:
        try:
            client.wait(_LOOK_S)
        except TimeoutError:
            continue
        told = [line.text for line in client.lines if '"error"' in line.text] or ["it was told nothing"]
        console.print(f"The client ended ({told[-1]}); here is the next.", soft_wrap=True)
        client = _start_client(testbed)


def _lines(where: "Address", token: str | None) -> Iterator[str]:
    """What to try."""
    if where.path is not None:
        curl, base = f"curl --unix-socket {where.path}", "http://lab"
    else:
        curl, base = f"curl -H 'Authorization: Bearer {token}'", f"http://{where}"
    body = f"""'{{"select": {{"server_port": {PORT}, "which": "newest"}}}}'"""
    yield f"The control API listens on {where}; a client talks to port {PORT} of the server. Try:"
    yield ""
    yield f"  {curl} {base}/flows"
    yield f"  {curl} {base}/faults --json {body}"
    yield f"  {curl} {base}/faults"
    yield f"  {curl} {base}/faults/ID/verdict"
    yield f"  {curl} -X DELETE {base}/faults/ID"
    yield f"  {curl} -N {base}/events"
    yield f"  {curl} {base}/captures/left -o left.pcapng"
    yield f"  {curl} {base}/docs -o docs.html"
    yield ""
    yield "Ctrl-C heals and ends everything."
