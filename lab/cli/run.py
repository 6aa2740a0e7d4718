"""``lab run``: the user's own programs in the nodes, one flow of theirs cut, a verdict at the end."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    port: Annotated[int | None, typer.Option(help="TCP port of the server; how the flow is found.")] = None,
    server: Annotated[str | None, typer.Option(metavar="CMD", help="Command to run in the server node.")] = None,
    client: Annotated[str | None, typer.Option(metavar="CMD", help="Command to run in the client node.")] = None,
    server_image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Docker image of the server; its own command without --server.")
    ] = None,
    client_image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Docker image of the client; its own command without --client.")
    ] = None,
    uplink: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="A server outside, instead of --server; it really sees a dead peer."),
    ] = None,
    backend: Annotated[str, typer.Option(help="auto, netns or docker.")] = "auto",
    cut_after: Annotated[
        str | None,
        typer.Option(metavar="T", help="Cut this long after the first byte in each direction (1s), or after its line."),
    ] = None,
    cut_when: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Cut when the client prints such a line; server:REGEX.")
    ] = None,
    heal_after: Annotated[
        str | None, typer.Option(metavar="T", help="Heal this long after the cut, or after its line.")
    ] = None,
    heal_when: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Heal when the client prints such a line; server:REGEX.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Watch until the client prints such a line; server:REGEX.")
    ] = None,
    direction: Annotated[str, typer.Option(help="both, forward (to the server) or return.")] = "both",
    scope: Annotated[str, typer.Option(help="flow: new connections pass. host: they do not.")] = "flow",
    flow: Annotated[str | None, typer.Option(help="Where several match: first, newest or a client port.")] = None,
    watch_for: Annotated[
        str | None,
        typer.Option("--for", metavar="T", help="How long to watch after the cut; else until all fates are known."),
    ] = None,
    profile: Annotated[str, typer.Option(help="linux, fast, study-server, study-server-fast or FILE.toml.")] = "linux",
    sysctl: Annotated[
        list[str] | None, typer.Option(metavar="NODE:KEY=VALUE", help="Kernel setting of one node; repeatable.")
    ] = None,
    noticed: Annotated[
        str | None, typer.Option(metavar="REGEX", help="The client has noticed when it prints a line like this.")
    ] = None,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="The names resolve to IPv6 addresses.")] = False,
    firewall: Annotated[str, typer.Option(help="auto, iptables (legacy tables) or nftables.")] = "auto",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for everything the run produces.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as one JSON object.")] = False,
) -> None:
    """Run a server and a client in their nodes and cut one of their flows.

    With --uplink the server is outside, and the client reaches it by its own name; use it only on systems that you may
    disturb.

    Inside the nodes the names client, router and server resolve. Watches until both kernels and programs have decided,
    or as --for and --until say;
    exit code 0 confirmed, 1 refuted, 3 invalid, 4 unsupported.
    """
    from lab.cli.execute import execute
    from lab.cli.options import duration, enum_value, far_end, find_profile, line_trigger, program, sysctls
    from lab.core.fault import Cut, Scope
    from lab.run.backend import Images
    from lab.run.spec import Program, RunSpec

    own, outside, its_port = far_end(server, server_image, port, uplink, ipv6=ipv6)
    spec = RunSpec(
        server=own,
        client=Program(program("client", client, client_image)),
        port=its_port,
        uplink=outside,
        profile=find_profile(profile),
        sysctls=sysctls(sysctl or []),
        ipv6=ipv6,
        cut_after_s=duration("--cut-after", cut_after or "1s"),
        cut_when=line_trigger("--cut-when", cut_when, "--cut-after", cut_after),
        heal_after_s=None if heal_after is None or heal_when is not None else duration("--heal-after", heal_after),
        heal_when=line_trigger("--heal-when", heal_when, "--heal-after", heal_after),
        end_when=line_trigger("--until", until),
        direction=enum_value("--direction", Cut, direction),
        scope=enum_value("--scope", Scope, scope),
        flow=flow,
        watch_s=None if watch_for is None else duration("--for", watch_for),
        noticed=noticed,
        firewall=firewall,
    )
    images = Images(client=client_image, server=server_image)
    execute(spec, backend=backend, images=images, out=out, as_json=json)
