"""What an engine's refusal means: its words, for the caller, with whose fault it is and what mends it.

Engines have no error codes of their own, and the HTTP status of one refusal differs between versions; the words are
what they share. Those here are of Docker 20.10 (runc 1.1) and 28 (runc 1.3).
"""

import re
from collections.abc import Callable

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError

_KEY = r"(?:sysctl |\S*/proc/(?:\./)?sys/)([\w./-]+)"
"""A kernel setting as runc names it: dotted, or as a path."""

UNRESTRICTED = "use an engine that runs as root, with its default seccomp profile"
"""The fix where an engine, or what confines its containers, forbids something."""

_FROM_LAB = "blackhole-lab/"
"""The lab's own images; no registry has them."""


def explain(said: str) -> LabError:
    """The lab's error for what an engine said when it refused.

    Args:
        said: The engine's message.

    Returns:
        An ``EnvironmentNotReady`` with the engine's own words where these are not known.
    """
    for pattern, make in _TABLE:
        if found := re.search(pattern, said, re.IGNORECASE | re.DOTALL):
            return make(found, _short(said))
    return EnvironmentNotReady(
        f"The Docker engine refused: {_short(said)}", fix="look into the engine's log: journalctl -u docker"
    )


def missing_image(name: str) -> EnvironmentNotReady:
    """The error for an image that the engine does not have."""
    fix = "lab image build" if name.startswith(_FROM_LAB) else f"docker pull {name}"
    return EnvironmentNotReady(f"There is no image {name} on this engine.", fix=fix)


def lost(doing: str) -> InvalidRun:
    """The error for an engine that went away in the middle."""
    return InvalidRun(
        f"The Docker engine went away: {doing}. It was stopped or restarted, and containers end with it.",
        fix="see that the engine stays up (journalctl -u docker), then run again",
    )


def _short(said: str) -> str:
    """The end of runc's chain of causes: all that differs from one failure to the next."""
    words = " ".join(said.split())
    for chained in ("error during container init: ", "unable to start container process: ", "runc create failed: "):
        _, _, tail = words.rpartition(chained)
        if tail != words:
            return tail.removesuffix(": unknown")
    return words


def _dotted(key: str) -> str:
    # runc writes both forms; in paths, a dot belongs to an interface's name.
    return key.replace("/", ".")


def _no_image(found: re.Match[str], _said: str) -> LabError:
    return missing_image(found[1])


def _no_pull(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(
        f"An image is not on this engine and cannot be pulled: {said}",
        fix="docker pull IMAGE where a registry can be reached, or docker load; for the lab's own: lab image build",
    )


def _port_taken(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(
        f"A port to publish is taken: {said}", fix="choose another port, or end what listens there (ss -ltnp)"
    )


def _no_setting(found: re.Match[str], _said: str) -> LabError:
    key = _dotted(found[1])
    return Unsupported(
        f"This kernel has no {key} in a network namespace.", fix=f"leave {key} out, or boot a newer kernel"
    )


def _no_choice(found: re.Match[str], said: str) -> LabError:
    key = _dotted(found[1])
    return Unsupported(f"This kernel does not offer what {key} was to be set to: {said}", fix=f"choose another {key}")


def _value(found: re.Match[str], said: str) -> LabError:
    key = _dotted(found[1])
    return UsageError(f"The kernel refuses the value for {key}: {said}", fix=f"choose another value for {key}")


def _closed_setting(found: re.Match[str], said: str) -> LabError:
    key = _dotted(found[1])
    if key.endswith("tcp_congestion_control"):
        return EnvironmentNotReady(
            f"The kernel does not allow this congestion control in a container: {said}",
            fix='sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic"',
        )
    return Unsupported(f"{key} cannot be set in a container: {said}", fix=f"leave {key} out")


def _host_setting(found: re.Match[str], said: str) -> LabError:
    return UsageError(f"{found[1]} is not a setting of one container: {said}", fix="give net.* settings only")


def _interface_setting(found: re.Match[str], said: str) -> LabError:
    return Unsupported(
        f"This engine sets {found[1]} of no single interface: {said}",
        fix="give the key of all interfaces, with conf.all in place of the name",
    )


def _capability(_found: re.Match[str], said: str) -> LabError:
    return Unsupported(f"The Docker engine does not know a capability that the lab needs: {said}")


def _no_command(found: re.Match[str], _said: str) -> LabError:
    return UsageError(f"The command {found[1]} is not in the image.", fix="name a program of the image, by its path")


def _no_program(found: re.Match[str], said: str) -> LabError:
    return UsageError(f"The command {found[1]} cannot be executed in the image: {said}", fix="name an executable file")


def _no_command_at_all(_found: re.Match[str], _said: str) -> LabError:
    return UsageError("The image has no command of its own, and none was given.", fix="give a command")


def _no_space(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(
        f"The Docker engine has no space left: {said}", fix="docker system df shows what takes it"
    )


def _no_subnet(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(
        f"The Docker engine has no subnet left for a network: {said}",
        fix="lab clean; then docker network ls shows what takes them",
    )


def _other_files(found: re.Match[str], _said: str) -> LabError:
    return Unsupported(
        f"The Docker engine does not see the folder {found[1]}: it has other file systems than this process.",
        fix="run the lab outside of a container, on the engine's own machine",
    )


def _ended(_found: re.Match[str], said: str) -> LabError:
    return InvalidRun(f"A container of the testbed ended while it was needed: {said}")


def _restricted(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(f"The Docker engine may not do what the lab needs: {said}", fix=UNRESTRICTED)


def _memory(_found: re.Match[str], said: str) -> LabError:
    return EnvironmentNotReady(f"The machine has no room for another container: {said}", fix="lab clean, then free -m")


_TABLE: tuple[tuple[str, Callable[[re.Match[str], str], LabError]], ...] = (
    (r"no such image: ([^\s\"]+)", _no_image),
    (
        r"pull access denied|repository does not exist|manifest unknown|manifest for .* not found|get \"https?://",
        _no_pull,
    ),
    (r"port is already allocated|address already in use", _port_taken),
    (r"no space left on device|disk quota exceeded", _no_space),
    (r"open " + _KEY + r".*no such file or directory", _no_setting),
    (r"write " + _KEY + r".*no such file or directory", _no_choice),
    (r"write " + _KEY + r".*(?:invalid argument|numerical result out of range)", _value),
    (r"(?:open|write) " + _KEY + r".*(?:permission denied|not permitted|read-only)", _closed_setting),
    (r"sysctl \"?([\w./-]+)\"? (?:is not in a separate|not allowed in host)", _host_setting),
    (r"interface specific sysctl setting \"([^\"]+)\"", _interface_setting),
    (r"unknown capability", _capability),
    (r"exec: \"([^\"]+)\": (?:stat .*no such file|executable file not found)", _no_command),
    (r"exec: \"([^\"]+)\": .*(?:permission denied|is a directory)", _no_program),
    (r"exec (\S+): (?:no such file or directory|exec format error)", _no_program),
    (r"no command specified", _no_command_at_all),
    (r"non-overlapping|pool overlaps|address pools have been fully subnetted", _no_subnet),
    (r"bind source path does not exist: (\S+)", _other_files),
    (r"non running container|no such container|container \S+ is (?:not running|exited|restarting)", _ended),
    (r"marked for removal", _ended),
    (r"cannot allocate memory|resource temporarily unavailable|too many open files", _memory),
    (r"operation not permitted|permission denied", _restricted),
)
"""Patterns of an engine's words, the particular ones first, and the error for each."""
