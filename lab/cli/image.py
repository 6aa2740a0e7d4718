"""``lab image``: builds what the container backend runs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.cli.output import print_json, print_out

if TYPE_CHECKING:
    from lab.testbed.docker.images.build import Built


def image(
    action: Annotated[str, typer.Argument(metavar="build", help="What to do: build.")],
    base_only: Annotated[bool, typer.Option("--base-only", help="See to the base image alone.")] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Carry out every step anew.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Build the images of the container backend: the lab's own, and the demo client and server.

    Needs a Docker engine and nothing else of Docker. Where no registry can be reached, the base is made with
    debootstrap. pip's configuration and the certificate authorities of this machine (PIP_CERT, REQUESTS_CA_BUNDLE,
    SSL_CERT_FILE) are handed to the build; the images keep nothing of them. LAB_IMAGE gives the lab's image another
    name.
    """
    from lab.cli.output import console
    from lab.core.errors import UsageError

    if action != "build":
        raise UsageError(f"lab image knows build only, not {action!r}.", fix="lab image build")
    from lab.testbed.docker.engine import connect
    from lab.testbed.docker.images import build
    from lab.testbed.docker.images.image import BASE

    with connect(build.SILENCE_TIMEOUT_S) as engine:
        base = build.build_base(engine, console.print)
        built = [] if base_only else build.build_all(engine, console.print, cached=not no_cache)
        reaper = None if base_only else build.find_reaper(engine)
    if json:
        print_json({"base": base, "images": [_as_json(one) for one in built], "reaper": reaper})
        return
    print_out(f"base    {BASE}: {base}")
    for one in built:
        print_out(f"built   {one.name}  {one.id.removeprefix('sha256:')[:12]}  {one.size_bytes / 1e6:.0f} MB")
    if not base_only:
        print_out(f"reaper  {_reaper_line(reaper)}")


def _as_json(built: "Built") -> dict[str, Any]:
    return {"name": built.name, "id": built.id, "size_bytes": built.size_bytes}


def _reaper_line(found: str | None) -> str:
    if found is None:
        return "Testcontainers' own could not be had; the lab's does without it"
    return f"{found}: present"
