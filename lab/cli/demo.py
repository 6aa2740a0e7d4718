"""``lab demo``: the main job in twenty seconds, narrated."""

from pathlib import Path
from typing import Annotated

import typer

PORT = 5000


def demo(
    backend: Annotated[str, typer.Option(help="auto, netns or docker.")] = "auto",
    ipv6: Annotated[bool, typer.Option("--ipv6", help="Talk over IPv6.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for everything the run produces.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as one JSON object.")] = False,
) -> None:
    """Cut one flow of two small programs, and watch both kernels give up.

    A client and a server talk through a router. One established flow goes dark in both directions, nothing is closed,
    and each side then sends one line. Every copy is shown with the time that was predicted before the cut.
    """
    from lab.cli.execute import execute
    from lab.cli.narrator import narrate
    from lab.cli.output import console
    from lab.core.profiles import PROFILES
    from lab.run.spec import Action, Program, RunSpec

    spec = RunSpec(
        name="demo",
        server=Program((str(PORT),), "lab.programs.server"),
        client=Program(("server", str(PORT), "--idle-after", "3"), "lab.programs.client"),
        port=PORT,
        profile=PROFILES["fast"],
        actions=(Action(0.05, "client", "send"), Action(0.30, "server", "send")),
        writes_on=False,
        reconnect_at_s=1.2,
        ipv6=ipv6,
    )
    execute(spec, backend=backend, out=out, as_json=json, narrator=lambda chosen: narrate(console, chosen))
