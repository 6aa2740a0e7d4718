"""``lab doctor``: everything that is missing on this machine, each with its fix."""

from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.cli.output import PLAIN_WIDTH, print_json, print_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.testbed.requirement import Requirement

NOT_READY = 5
"""Exit code where no testbed can run."""


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Find everything that is missing on this machine, each with its one-line fix.

    Namespaces, links, rules, packet sockets and socket diagnosis are tried in namespaces of their own; nothing of
    the host is touched. Exits with 0 where a testbed can run, embedded or in containers, with 5 where none can.
    """
    from lab.testbed import preflight
    from lab.testbed.docker import readiness

    embedded, containers = preflight.inspect(), readiness.inspect()
    backends = {"netns": preflight.is_ready(embedded), "docker": readiness.is_ready(containers)}
    found, ready = [*embedded, *containers], any(backends.values())
    if json:
        requirements = [_as_json(one) for one in found]
        versions = preflight.versions()
        print_json({"ready": ready, "backends": backends, "requirements": requirements, "versions": versions})
    else:
        _show(found, backends)
    if not ready:
        raise typer.Exit(NOT_READY)


def _as_json(requirement: "Requirement") -> dict[str, Any]:
    return {
        "name": requirement.name,
        "status": requirement.status.value,
        "required": requirement.required,
        "seen": requirement.seen,
        "fix": requirement.fix,
    }


def _show(found: "Sequence[Requirement]", backends: dict[str, bool]) -> None:
    from lab.testbed.requirement import Status

    for one in found:
        style = None if one.status is Status.OK else "bold red" if one.blocks else "yellow"
        print_out(_line(one), style=style)
        if one.fix is not None:
            print_out(fill(f"fix: {one.fix}", PLAIN_WIDTH, initial_indent="    ", subsequent_indent="    "))
    print_out()
    if backends["netns"]:
        print_out("Ready: the embedded testbed can run.", style="bold green")
    else:
        causes = ", ".join(one.name for one in found if one.blocks and one.fix is not None)
        print_out(fill(f"The embedded testbed is not ready; to mend: {causes}.", PLAIN_WIDTH), style="bold red")
    if backends["docker"]:
        print_out("Ready: containers can be had (--backend docker).", style="bold green")


def _line(one: "Requirement") -> str:
    status = one.status.value.removesuffix("-missing")
    return fill(f"{status:<11} {one.name:<24} {one.seen}", PLAIN_WIDTH, subsequent_indent=" " * 37)
