"""What this machine offers the lab, found at once: every requirement, what was seen, and the one line that mends it.

What the kernel allows is tried, in namespaces made for it, by a program of its own (``preflight_probe``), so that
nothing of the caller changes; what can be read without trying is in ``machine``.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lab
from lab.core.errors import LabError
from lab.testbed import machine, preflight_probe
from lab.testbed.machine import read_hz, versions
from lab.testbed.requirement import Requirement, Status, optional

__all__ = ["Answer", "Requirement", "Status", "inspect", "is_ready", "judge", "read_hz", "versions"]

PROBE_TIMEOUT_S = 10.0
"""A kernel module that has to be loaded first may take a second or two."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one probe reported."""

    ok: bool
    seen: str
    errno: int | None = None
    fix: str | None = None
    """What the lab's own error proposes."""


@dataclass(frozen=True, slots=True)
class _Probed:
    """A requirement that a probe decides."""

    probe: Callable[[], str]
    name: str
    fix: str
    required: bool = True


_NAMESPACES = "run outside of the container, or docker run --security-opt seccomp=unconfined"

_PROBED = (
    _Probed(preflight_probe.user_namespace, "user namespaces", _NAMESPACES),
    _Probed(preflight_probe.network_namespace, "network namespaces", _NAMESPACES),
    _Probed(preflight_probe.pid_namespace, "PID namespaces", _NAMESPACES),
    _Probed(preflight_probe.mount_namespace, "mount namespaces", _NAMESPACES),
    _Probed(preflight_probe.sysctls, "kernel settings", "docker run --security-opt systempaths=unconfined"),
    _Probed(preflight_probe.links, "NET_ADMIN and veth", "sudo modprobe veth"),
    _Probed(preflight_probe.ipv6, "IPv6", "boot without ipv6.disable=1"),
    _Probed(preflight_probe.packet_socket, "NET_RAW", "sudo modprobe af_packet"),
    _Probed(preflight_probe.inet_diag, "socket diagnosis", "sudo modprobe tcp_diag"),
    _Probed(preflight_probe.iptables, "legacy tables", "sudo modprobe -a iptable_mangle ip6table_mangle"),
    _Probed(preflight_probe.nftables, "nftables", "sudo modprobe nf_tables"),
    _Probed(preflight_probe.conntrack, "conntrack", "sudo modprobe nf_conntrack", required=False),
)

_RULES = (preflight_probe.iptables, preflight_probe.nftables)
"""One of the two is enough."""

_FORBIDDEN = (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EUSERS)
"""The kernel has it, and a privilege, a mount or a limit keeps it from us."""


def inspect() -> list[Requirement]:
    """Every requirement, never stopping at the first that fails. Takes about a second and changes nothing.

    Returns:
        What builds on something else comes after it.
    """
    children = _start_probes()
    described = machine.describe()
    return [*judge(_collect(children)), *described]


def is_ready(requirements: Sequence[Requirement]) -> bool:
    """Whether the embedded testbed can run."""
    return not any(requirement.blocks for requirement in requirements)


def judge(answers: Mapping[str, Answer]) -> list[Requirement]:
    """Requirements from what the probes answered.

    Args:
        answers: By name of the probe; one without an answer was not tried.
    """
    has_rules = any(probe.__name__ in answers and answers[probe.__name__].ok for probe in _RULES)
    judged = []
    for probed in _PROBED:
        required = probed.required and not (has_rules and probed.probe in _RULES)
        judged.append(_judge(probed, answers.get(probed.probe.__name__), required))
    return [*judged, _judge_congestion_control(answers.get(preflight_probe.congestion_control.__name__))]


def _judge(probed: _Probed, answer: Answer | None, required: bool) -> Requirement:
    absent = Status.MISSING if required else Status.OPTIONAL_MISSING
    if answer is None:
        return Requirement(probed.name, absent, required, "not tried: what it builds on failed")
    if answer.ok:
        return Requirement(probed.name, Status.OK, required, answer.seen)
    seen, fix = _explain(probed, answer)
    status = Status.RESTRICTED if answer.errno in _FORBIDDEN else absent
    return Requirement(probed.name, status, required, seen, fix)


def _explain(probed: _Probed, answer: Answer) -> tuple[str, str]:
    if answer.seen.startswith("No module named"):
        return answer.seen, "make setup"
    if probed.fix is _NAMESPACES and answer.errno is not None:
        # The testbed's own words, so that doctor and run agree.
        from lab.testbed.netns import readiness

        explained = readiness.explain(OSError(answer.errno, answer.seen))
        if isinstance(explained, LabError):
            return explained.message, explained.fix or probed.fix
    return answer.seen, answer.fix or probed.fix


def _judge_congestion_control(answer: Answer | None) -> Requirement:
    name, fix = "congestion control", 'sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic"'
    if answer is None or not answer.ok:
        return optional(name, ok=False, seen=answer.seen if answer else "not tried: what it builds on failed", fix=fix)
    if answer.seen.startswith("cubic"):
        return optional(name, ok=True, seen=answer.seen, fix=fix)
    return Requirement(name, Status.RESTRICTED, False, f"{answer.seen}; profiles prefer cubic", fix)


def _start_probes() -> "dict[str, subprocess.Popen[str]]":
    where = os.pathsep.join(filter(None, (str(Path(lab.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    return {
        group: subprocess.Popen(
            [sys.executable, "-m", preflight_probe.__name__, group],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": where},
        )
        for group in preflight_probe.GROUPS
    }


def _collect(children: "Mapping[str, subprocess.Popen[str]]") -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for group, child in children.items():
        asked = [probe.__name__ for probe in (*preflight_probe.FENCES, *preflight_probe.GROUPS[group])]
        answers.update(_wait(child, asked))
    return answers


def _wait(child: "subprocess.Popen[str]", asked: Sequence[str]) -> dict[str, Answer]:
    """The answers of one program; where it ended early, the probe that it was at is to blame."""
    try:
        said, complaints = child.communicate(timeout=PROBE_TIMEOUT_S)
        ending = f"the probe ended with {child.returncode}: {' '.join(complaints.split()[-20:])}"
    except subprocess.TimeoutExpired:
        child.kill()
        said, _ = child.communicate()
        ending = f"no answer within {PROBE_TIMEOUT_S:.0f} s"
    answers = {}
    for line in said.splitlines():
        found = json.loads(line)
        name = found.pop("probe")
        answers[name] = Answer(**found)
    unanswered = [name for name in asked if name not in answers]
    if child.returncode and unanswered:
        answers[unanswered[0]] = Answer(ok=False, seen=ending)
    return answers
