"""The host's own network state, without what an engine adds and removes for its networks."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

COMMANDS = (
    ["iptables-save"],
    ["ip6tables-save"],
    ["iptables-legacy-save"],
    ["ip6tables-legacy-save"],
    ["ip", "rule"],
    ["ip", "-6", "rule"],
    ["ip", "route", "show", "table", "all"],
    ["ip", "-6", "route", "show", "table", "all"],
)

ENGINES = re.compile(
    r"\bbr-[0-9a-f]{12}\b|\bveth[0-9a-f]{6,}\b|\bif\d+\b|\bdocker0\b|\bDOCKER|-s (\S+) -d \1 .*-j MASQUERADE"
)
"""An engine's interfaces, also one that went before its name was found, its chains, a published port's way back."""


def host_state() -> dict[str, object]:
    """Rules, routes and settings of this process's network namespace, by where they were read."""
    state: dict[str, object] = {}
    for command in COMMANDS:
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except FileNotFoundError:
            continue
        # Comments hold the time; packet counters stand in brackets.
        lines = [re.sub(r"\[\d+:\d+\]", "", line) for line in said.splitlines() if not line.startswith("#")]
        state[" ".join(command)] = sorted(line for line in lines if not ENGINES.search(line))
    for path in settings():
        try:
            state[str(path)] = path.read_text()
        except OSError:
            continue
    return state


def changes(before: dict[str, object], after: dict[str, object]) -> dict[str, tuple[object, object]]:
    """What differs, by where it was read."""
    return {
        key: (before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def settings() -> Iterator[Path]:
    """The writable settings under net; an engine's interfaces come and go meanwhile."""
    for folder, folders, names in os.walk("/proc/sys/net"):
        folders[:] = [name for name in folders if not ENGINES.search(name)]
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):
                if path.stat().st_mode & 0o200:
                    yield path
