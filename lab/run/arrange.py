"""Brings up everything that a run needs, in the order in which it can be trusted.

The capture runs before any program does, so that it holds the handshake and the second of calm before the cut that
proves it complete. The bystander talks before the flow exists, so that it has a life to lose.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from lab.core.errors import Unsupported, UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.core.profiles import FIRST_KERNEL, Profile
from lab.report.folder import RunFolder
from lab.run.bystander import bystander_port, start_bystander
from lab.run.flowfinder import wait_for_listener
from lab.run.patience import Patience
from lab.run.spec import Program, RunSpec
from lab.testbed.ports import Node, Process, Testbed


@dataclass(frozen=True, slots=True)
class Stage:
    """A testbed with its programs running and its capture open; the flow may not exist yet."""

    testbed: Testbed
    spec: RunSpec
    server: Process | None
    """None where the server is outside."""

    bystander: Process
    """The client end of the second flow; it prints one JSON line per exchange."""

    bystander_port: int
    captured_since: float
    """From here on nothing of the flow can have been missed, CLOCK_MONOTONIC."""

    def address(self, node: Node) -> str:
        """The node's address in the run's family."""
        return node.ipv6 if self.spec.ipv6 else node.ipv4


def apply_settings(node: Node, profile: Profile, extra: Mapping[str, str]) -> None:
    """Pin what the profile pins, in the first of its values that the kernel takes; the user's word comes last.

    Raises:
        Unsupported: the profile depends on a sysctl that this kernel does not have, or the user wants such a one.
        UsageError: the user wants one that no kernel has, or a value that the kernel refuses.
    """
    available = {pin.sysctl for pin in profile.pins if _has(node, pin.sysctl)}
    if unmet := profile.unmet(available):
        names = ", ".join(f"{pin.sysctl} (since Linux {pin.since})" for pin in unmet)
        raise Unsupported(f"Profile {profile.name} depends on {names}, which this kernel does not have.")
    for pin in profile.resolve(available):
        if pin.sysctl in extra:
            continue
        for value in pin.values:
            with contextlib.suppress(UsageError, Unsupported):
                node.write_sysctl(pin.sysctl, value)
                break
        else:
            raise UsageError(f"The kernel refuses {pin.sysctl} = {' or '.join(pin.values)} of profile {profile.name}.")
    write_extra(node, extra)


def write_extra(node: Node, extra: Mapping[str, str]) -> None:
    """Set what the user asked for beside the profile.

    Raises:
        Unsupported: this kernel does not have it yet.
        UsageError: no kernel has it, or this one refuses the value.
    """
    for name, value in extra.items():
        if not _has(node, name) and name not in FIRST_KERNEL:
            raise UsageError(f"There is no sysctl {name} in the {node.name} node.", fix="sysctl -a lists them")
        node.write_sysctl(name, value)


def _has(node: Node, sysctl: str) -> bool:
    try:
        node.read_sysctl(sysctl)
    except Unsupported:
        return False
    return True


def start(program: Program, node: Node) -> Process:
    """Start a program in a node: the user's command, or one of the lab's own without a new interpreter."""
    if program.module is not None:
        return node.spawn_module(program.module, program.argv)
    return node.spawn(program.argv)


def bring_up(
    testbed: Testbed, folder: RunFolder, spec: RunSpec, patience: Patience, programs: dict[str, Process]
) -> Stage:
    """Capture, server and bystander, ready for the client; of an outside server there is nothing to bring up.

    Args:
        testbed: Up.
        folder: For the capture.
        spec: What to do.
        patience: Waits.
        programs: The server goes in here at once: what it printed is kept, whatever becomes of it.

    Raises:
        UsageError: the server's command fails or listens nowhere.
        Unsupported: the bystander cannot talk, so no run could be trusted here.
    """
    for node in (testbed.client, testbed.server):
        apply_settings(node, spec.profile, spec.sysctls.get(node.name, {}))
    write_extra(testbed.router, spec.sysctls.get("router", {}))
    testbed.router.start_capture(folder.path)
    captured_since = patience.now()
    server = None
    if spec.server is not None:
        server = programs["server"] = start(spec.server, testbed.server)
        wait_for_listener(testbed.server, server, spec.port, patience)
    port = bystander_port(spec.port)
    bystander = start_bystander(testbed, spec, port, patience)
    return Stage(testbed, spec, server, bystander, port, captured_since)


def hole_before_connect(stage: Stage, client_port: int) -> FourTuple:
    """The flow that the client will try to open from a port it was told to bind."""
    nodes = stage.testbed
    return FourTuple(
        client=Endpoint(stage.address(nodes.client), client_port),
        server=Endpoint(stage.address(nodes.server), stage.spec.port),
    )
