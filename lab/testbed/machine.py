"""What this machine is made of: its kernel's knobs and timer, libraries, tools. Read only, nothing is tried."""

import ctypes.util
import functools
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import lab
from lab.testbed.requirement import Requirement, Status, optional

LIBRARIES = ("matplotlib", "pydantic", "pyroute2", "python-iptables", "scapy")
"""Distributions that a run's figures depend on."""

KNOBS = (
    ("tcp_rto_max_ms", "6.15", "time lapse is left with tcp_retries2"),
    ("tcp_rto_min_us", "6.11", "the minimum RTO stays at 200 ms"),
    ("tcp_syn_linear_timeouts", "6.5", "SYN copies back off from the first on"),
)
"""Settings under net.ipv4 that newer kernels have, since when, and what becomes of a run without them."""

TOOLS = (
    ("tshark", "tshark", "only tests compare with it"),
    ("nft", "nftables", "only for looking at rules"),
    ("iptables-legacy", "iptables", "only for looking at rules"),
)
"""Commands, their packages, and what they are for."""

_TOOL_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))
"""An ordinary user's PATH lacks the folders in which Debian keeps network tools."""

_OLDEST_PYTHON = (3, 11)
_COARSE_CLOCKS = ("jiffies", "refined-jiffies")
_ENGINE_TIMEOUT_S = 0.5


def describe() -> list[Requirement]:
    """Everything that can be read off this machine, what the embedded testbed needs first."""
    return [
        _python(),
        _libpcap(),
        *(_knob(*knob) for knob in KNOBS),
        _timer_frequency(),
        _clock(),
        *(_tool(*tool) for tool in TOOLS),
    ]


def read_hz() -> int | None:
    """Ticks of the kernel's timer per second (CONFIG_HZ), None where its configuration cannot be read."""
    release = platform.release()
    return find_hz([Path("/proc/config.gz"), Path(f"/boot/config-{release}"), Path(f"/lib/modules/{release}/config")])


def find_hz(configurations: list[Path]) -> int | None:
    """CONFIG_HZ of the first of these kernel configurations that can be read and has it, gzipped or not."""
    for path in configurations:
        try:
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
        except (OSError, EOFError):
            continue
        if found := re.search(rb"^CONFIG_HZ=(\d+)$", content, re.MULTILINE):
            return int(found[1])
    return None


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    found = [("lab", lab.__version__), ("kernel", platform.release()), ("python", platform.python_version())]
    for distribution in LIBRARIES:
        try:
            found.append((distribution, metadata.version(distribution)))
        except metadata.PackageNotFoundError:
            continue
    for command in ("iptables-legacy", "nft"):
        path = shutil.which(command, path=_TOOL_PATH)
        if path is not None:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
            found.append((command, said.strip()))
    return tuple(found)


def versions() -> dict[str, str]:
    """Versions for the record of a run: lab, kernel, python, libraries, and rule tools where they are installed."""
    return dict(_versions())


def _python() -> Requirement:
    version = platform.python_version()
    if sys.version_info[:2] >= _OLDEST_PYTHON:
        return Requirement("Python", Status.OK, True, version)
    return Requirement("Python", Status.MISSING, True, version, "PYTHON=/path/to/python3.11 make setup")


def _libpcap() -> Requirement:
    found = ctypes.util.find_library("pcap")
    if found is not None:
        return Requirement("libpcap", Status.OK, True, found)
    seen = "not found, so capture filters cannot be compiled"
    return Requirement("libpcap", Status.MISSING, True, seen, "sudo apt-get install libpcap0.8")


def _knob(name: str, since: str, without: str) -> Requirement:
    try:
        seen = f"{Path('/proc/sys/net/ipv4', name).read_text(encoding='ascii').strip()} on the host"
    except OSError:
        seen = f"not in Linux {platform.release()}; {without}"
        return optional(name, ok=False, seen=seen, fix=f"boot Linux {since} or newer")
    return optional(name, ok=True, seen=seen, fix="")


def _timer_frequency() -> Requirement:
    frequency = read_hz()
    seen = f"HZ={frequency}" if frequency else "the kernel's configuration cannot be read, so HZ is assumed"
    return optional("timer frequency", ok=frequency is not None, seen=seen, fix="provide /boot/config-$(uname -r)")


def _clock() -> Requirement:
    try:
        path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        source = path.read_text(encoding="ascii").strip()
    except OSError:
        source = "unknown"
    coarse = source in _COARSE_CLOCKS
    seen = f"{source}: instants may be a timer tick off" if coarse else source
    return optional("clock source", ok=not coarse, seen=seen, fix="boot with clocksource=tsc or clocksource=hpet")


def _tool(command: str, package: str, purpose: str) -> Requirement:
    found = shutil.which(command, path=_TOOL_PATH)
    seen = found or f"not found; {purpose}"
    return optional(command, ok=found is not None, seen=seen, fix=f"sudo apt-get install {package}")
