"""Labels: whose a container, network or volume is, and whether its owner is gone.

Everything that the lab makes on an engine carries all of them from its creation on, so that whoever cleans up needs
nothing but the engine's lists. This module stands on the standard library alone: the reaper's container imports it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.testbed.owner import has_ended, own_identity

LAB: Final = "dev.blackhole-lab"
"""``1`` on everything that a process of the lab made while it ran; not on images, which outlive their builder."""

OWNER: Final = f"{LAB}.owner"
"""The identity of the process that made it (``lab.testbed.owner``)."""

BOOT: Final = f"{LAB}.boot"
"""The boot during which it was made: identities count within one boot only."""

TESTBED: Final = f"{LAB}.testbed"
"""A random name for the things of one testbed."""

ROLE: Final = f"{LAB}.role"
"""client, router, server, program, reaper, ..."""

REAPER: Final = "reaper"
"""The role of the container that removes what a dead owner left."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that something belongs to."""

    identity: str
    """As ``lab.testbed.owner`` names it."""

    boot: str
    """The boot that the identity counts in."""


def boot_id() -> str:
    """Of the boot that this kernel is in."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def own() -> Owner:
    """This process."""
    return Owner(own_identity(), boot_id())


def labels(testbed: str, role: str) -> dict[str, str]:
    """What this process puts on everything that it makes.

    Args:
        testbed: Random name of the testbed that it belongs to; empty for what all testbeds share.
        role: What it is in there.
    """
    owner = own()
    return {LAB: "1", OWNER: owner.identity, BOOT: owner.boot, TESTBED: testbed, ROLE: role}


def of_lab() -> list[str]:
    """For the ``label`` filter of an engine's lists: what the lab made, whoever owns it."""
    return [f"{LAB}=1"]


def of_owner(owner: Owner) -> list[str]:
    """For the ``label`` filter: what one process made."""
    return [f"{LAB}=1", f"{OWNER}={owner.identity}", f"{BOOT}={owner.boot}"]


def of_testbed(testbed: str) -> list[str]:
    """For the ``label`` filter: what belongs to one testbed."""
    return [f"{LAB}=1", f"{TESTBED}={testbed}"]


def owner_of(found: Mapping[str, str] | None) -> Owner | None:
    """Whose it is, from its labels; None where they do not say, as on what is not the lab's."""
    if found is None or found.get(LAB) != "1" or not found.get(OWNER) or not found.get(BOOT):
        return None
    return Owner(found[OWNER], found[BOOT])


def is_gone(owner: Owner) -> bool:
    """Whether an owner is known to have ended; False where that cannot be told from here.

    Only for what is on an engine of this machine: a process of an earlier boot is gone, one of another machine is not.
    """
    if owner.boot != boot_id():
        return True
    return has_ended(owner.identity) and not _is_hidden(owner.identity)


def _is_hidden(identity: str) -> bool:
    """Whether its process id is in use by a process that /proc does not show (mounted with hidepid)."""
    pid = int(identity.partition(":")[0])
    if Path("/proc", str(pid)).exists():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    # It is there, and came after the first look.
    return True
