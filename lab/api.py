"""The lab from Python: one call that cuts a flow of two programs and says what came of it.

The commands use the same parts; whoever needs more than one call finds them in ``lab.run`` and ``lab.testbed``.
"""

import enum
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from lab.core.errors import UsageError
from lab.core.fault import Cut, Scope
from lab.core.profiles import Profile, profile_named
from lab.report.record import Record
from lab.run.backend import name_of, opener
from lab.run.outside import resolve
from lab.run.runner import Run
from lab.run.spec import Program, RunSpec
from lab.run.trigger import LineTrigger, parse_trigger

CUT_AFTER_S = 1.0
"""From the first byte in each direction, where nothing else is asked for."""

Member = TypeVar("Member", bound=enum.Enum)


def blackhole(
    server: Sequence[str] | None = None,
    client: Sequence[str] | None = None,
    port: int | None = None,
    *,
    uplink: str | None = None,
    backend: str = "auto",
    noticed: str | None = None,
    profile: str | Profile = "linux",
    cut_after_s: float | None = None,
    cut_when: str | None = None,
    heal_after_s: float | None = None,
    heal_when: str | None = None,
    until: str | None = None,
    direction: str = "both",
    scope: str = "flow",
    flow: str | None = None,
    watch_s: float | None = None,
    sysctls: Mapping[str, Mapping[str, str]] | None = None,
    ipv6: bool = False,
    out: Path | str | None = None,
) -> Record:
    """Run a server and a client, cut their flow silently, watch, and judge.

    Inside the nodes the names ``client``, ``router`` and ``server`` resolve.

    Args:
        server: Command of the server, as a list.
        client: Command of the client.
        port: The server's TCP port.
        uplink: HOST:PORT of a server outside, instead of ``server`` and ``port``; it really sees a dead peer.
        backend: auto, netns or docker.
        noticed: Regular expression; the client has noticed when it prints a line like this. Without one: when it
            closes, reports an error or exits.
        profile: linux, fast, study-server, study-server-fast, or a profile of your own.
        cut_after_s: From the first byte in each direction, 1 s where None; with ``cut_when`` from its line, at once
            where None.
        cut_when: Regular expression; the cut follows a line like this of the client's output, or with ``server:`` in
            front of the server's.
        heal_after_s: From the cut, or from the line of ``heal_when``; neither of the two leaves the flow dark.
        heal_when: As ``cut_when``: the heal follows the first such line after the cut.
        until: As ``cut_when``: the watch ends with the first such line after the cut.
        direction: both, forward (to the server) or return.
        scope: flow (new connections pass) or host (they do not).
        flow: first, newest or a client port, where several flows match.
        watch_s: How long to watch after the cut; None: until all fates are known.
        sysctls: Per node (client, router, server), on top of the profile.
        ipv6: The names resolve to IPv6 addresses.
        out: Folder for everything the run produces; a fresh one under ``runs/`` where None.

    Returns:
        The record. Look at ``outcome`` first: a run that could not prove itself is INVALID, which is no result.

    Raises:
        LabError: nothing could be judged; the message says why and what mends it.
    """
    for name, command in (("server", server), ("client", client)):
        if isinstance(command, str):
            raise UsageError(f"{name} is a list of words, not one string.", fix=f"{name}={shlex.split(command)!r}")
    if client is None:
        raise UsageError("There is nothing to run in the client node.", fix="client=[...]")
    outside = None if uplink is None else resolve(uplink, ipv6=ipv6)
    if outside is not None and (server is not None or port is not None):
        raise UsageError("uplink says where the server is; server and port do not go with it.")
    if outside is None and (server is None or port is None):
        raise UsageError("A server and its port were expected, or the uplink to one outside.")
    heal_at = _trigger(heal_when, heal_after_s)
    spec = RunSpec(
        server=None if server is None else Program(tuple(server)),
        client=Program(tuple(client)),
        port=outside.port if outside is not None else port or 0,
        uplink=outside,
        noticed=noticed,
        profile=profile_named(profile) if isinstance(profile, str) else profile,
        cut_after_s=CUT_AFTER_S if cut_after_s is None else cut_after_s,
        cut_when=_trigger(cut_when, cut_after_s),
        heal_after_s=heal_after_s if heal_at is None else None,
        heal_when=heal_at,
        end_when=_trigger(until),
        direction=_member(Cut, direction),
        scope=_member(Scope, scope),
        flow=flow,
        watch_s=watch_s,
        sysctls=sysctls or {},
        ipv6=ipv6,
    )
    opened = opener(backend, leads_outside=outside is not None)
    return Run(spec, opened, out=None if out is None else Path(out), backend=name_of(opened)).execute()


def _trigger(text: str | None, delay_s: float | None = None) -> LineTrigger | None:
    return None if text is None else parse_trigger(text, delay_s or 0.0)


def _member(kind: type[Member], value: str) -> Member:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise UsageError(f"Expected one of {choices}, got {value!r}.") from None
