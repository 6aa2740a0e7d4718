"""``lab live serve``: a local session server, until Ctrl-C."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lab.live.server.serving import Serving

TOLD = {
    "attach": "connection {connection} has {session}{again}",
    "refused": "connection {connection} is refused: {cause} ({code} {reason})",
    "detach": "connection {connection} is gone: {how}{detail}",
    "closed": "connection {connection} is closed: {code} {reason}",
    "heard": "{session} heard: {text}",
    "broken": "connection {connection} broke WebSocket's rules: {code} {reason}",
    "defect": "a defect of the server: {error}",
    "lapse": "session time runs {factor} times as fast",
}
"""What is told to people; all of it is in the log and, with --json, on standard output."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for ws; 0 takes a free one.")] = 8765,
    tls_port: Annotated[int, typer.Option(help="Port for wss.")] = 8766,
    status_port: Annotated[int, typer.Option(help="Port for GET /status.")] = 8767,
    profile: Annotated[
        str, typer.Option(help="Which server it resembles; a wrong name lists them.")
    ] = "gemini-3.8-live-2026-10",
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the profile.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same numbers each time.")] = None,
    ca: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the authority; a lasting one else.")] = None,
    bookings: Annotated[Path | None, typer.Option(help="The assistant's bookings, for the status.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write every frame here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per event on standard output.")] = False,
) -> None:
    """Serve the Live protocol locally, as the server of a profile does, until Ctrl-C.

    Two environment variables, printed at the start, redirect an unmodified google-genai program to it. No key is
    checked, and no model runs: a scripted one books a slot.
    """
    import asyncio

    from lab.cli.output import console
    from lab.live.server.program import changed, listening, run
    from lab.live.server.serving import Options
    from lab.live.server.teller import Teller

    options = Options(
        profile=changed(profile, change or []),
        host=host,
        port=port,
        tls_port=tls_port,
        status_port=status_port,
        status_host=host,
        ca=ca or _lasting(),
        seed=seed,
        log=log,
        bookings=bookings,
    )

    def narrate(event: str, *, t: float, **fields: Any) -> None:  # noqa: ARG001 - as every teller is called
        if (text := line(event, fields)) is not None:
            console.print(text, soft_wrap=True)

    def ready(server: "Serving") -> None:
        if as_json:
            listening(server)
            return
        for text in _invitation(server, host):
            typer.echo(text)  # not wrapped: a shell takes it
        console.print("Ctrl-C ends it.")

    if not as_json:
        asyncio.run(run(options, tell=narrate, ready=ready))
        return
    with Teller() as tell:
        asyncio.run(run(options, tell=tell, ready=ready))


def line(event: str, fields: Mapping[str, Any]) -> str | None:
    """An event in words, None where people are not told."""
    if event not in TOLD:
        return None
    detail = f" ({fields['detail']})" if fields.get("detail") else ""
    again = " again" if fields.get("resumed") else ""
    return TOLD[event].format_map({**fields, "detail": detail, "again": again})


def _invitation(server: "Serving", host: str) -> Iterator[str]:
    """What a shell takes, and what people read, in the form of a script."""
    from lab.live.protocol.paths import developer

    name = f"[{host}]" if ":" in host else host
    yield "# An unmodified google-genai program talks to this server with these two:"
    yield f"export SSL_CERT_FILE={server.authority}"
    yield f"export GOOGLE_GEMINI_BASE_URL=https://{name}:{server.port('wss')}"
    yield "# Clients that take plain WebSocket:"
    yield f"# ws://{name}:{server.port('ws')}{developer()}"
    yield f"# What it holds: curl http://{name}:{server.status_port}/status"


def _lasting() -> Path:
    """Where the authority stays from one server to the next, so that what trusts it once does so again."""
    import os

    given = os.environ.get("XDG_STATE_HOME")
    root = Path(given) if given and Path(given).is_absolute() else Path.home() / ".local" / "state"
    return root / "blackhole-lab" / "live-ca"
