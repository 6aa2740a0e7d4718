"""Requirements: judged from what the probes answered, and found on this machine without changing it."""

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.testbed import machine, preflight, preflight_probe
from lab.testbed.preflight import Answer
from lab.testbed.requirement import Requirement, Status

PROBES = [probe.__name__ for probe in preflight_probe.FENCES + sum(preflight_probe.GROUPS.values(), ())]
NAMESPACES = ("user", "net", "pid", "mnt")


def answers(**changed: Answer | None) -> dict[str, Answer]:
    """All well, but for what is changed; None takes an answer away."""
    every = {name: Answer(ok=True, seen="there") for name in PROBES}
    every["congestion_control"] = Answer(ok=True, seen="cubic (inherited: cubic)")
    return {name: answer for name, answer in {**every, **changed}.items() if answer is not None}


def find(requirements: list[Requirement], name: str) -> Requirement:
    return next(one for one in requirements if one.name == name)


def refused(number: int) -> Answer:
    return Answer(ok=False, seen=os.strerror(number), errno=number)


def test_a_machine_with_everything_is_ready_and_needs_no_fix() -> None:
    judged = preflight.judge(answers())

    assert preflight.is_ready(judged)
    assert {(one.status, one.fix) for one in judged} == {(Status.OK, None)}
    assert len(judged) == len(PROBES)


def test_user_namespaces_that_are_forbidden_keep_the_testbed_from_running() -> None:
    judged = preflight.judge(answers(user_namespace=refused(errno.EPERM)))

    found = find(judged, "user namespaces")
    assert found.status is Status.RESTRICTED
    assert found.fix
    assert not preflight.is_ready(judged)


def test_what_could_not_be_tried_is_never_called_well() -> None:
    judged = preflight.judge({"user_namespace": refused(errno.EPERM), "network_namespace": refused(errno.EPERM)})

    assert Status.OK not in {one.status for one in judged}
    assert find(judged, "NET_RAW").seen.startswith("not tried")


@pytest.mark.parametrize(("lost", "name"), [("iptables", "legacy tables"), ("nftables", "nftables")])
def test_either_kind_of_rules_is_enough(lost: str, name: str) -> None:
    judged = preflight.judge(answers(**{lost: Answer(ok=False, seen="no such table", fix="modprobe it")}))

    found = find(judged, name)
    assert (found.status, found.fix) == (Status.OPTIONAL_MISSING, "modprobe it")
    assert preflight.is_ready(judged)


def test_without_any_rules_both_kinds_are_missing() -> None:
    gone = Answer(ok=False, seen="no such table", errno=errno.ENOENT)
    judged = preflight.judge(answers(iptables=gone, nftables=gone))

    assert [find(judged, name).status for name in ("legacy tables", "nftables")] == [Status.MISSING] * 2
    assert not preflight.is_ready(judged)


def test_a_python_package_that_is_missing_is_mended_by_the_set_up() -> None:
    judged = preflight.judge(answers(links=Answer(ok=False, seen="No module named 'pyroute2'")))

    assert find(judged, "NET_ADMIN and veth").fix == "make setup"


def test_a_read_only_proc_sys_is_a_restriction() -> None:
    found = find(preflight.judge(answers(sysctls=refused(errno.EROFS))), "kernel settings")

    assert found.status is Status.RESTRICTED
    assert found.blocks


def test_cubic_that_is_not_allowed_does_not_keep_the_testbed_from_running() -> None:
    judged = preflight.judge(answers(congestion_control=Answer(ok=True, seen="reno (inherited: bbr)")))

    found = find(judged, "congestion control")
    assert found.status is Status.RESTRICTED
    assert "tcp_allowed_congestion_control" in (found.fix or "")
    assert preflight.is_ready(judged)


def test_everything_is_found_at_once_and_each_fault_has_one_line_to_mend_it() -> None:
    found = preflight.inspect()

    assert len(found) == len({one.name for one in found}) > 20
    for one in found:
        assert one.seen
        assert "\n" not in one.seen + (one.fix or "")
        assert one.fix is None if one.status is Status.OK else one.fix or one.seen.startswith("not tried")
    # pytest itself runs on it.
    assert find(found, "Python").status is Status.OK


def test_nothing_of_the_caller_changes() -> None:
    def state() -> list[object]:
        links = sorted(path.name for path in Path("/sys/class/net").iterdir())
        files = [Path(path).read_bytes() for path in ("/proc/net/route", "/etc/hosts", "/proc/self/uid_map")]
        return [*(Path(f"/proc/self/ns/{kind}").readlink() for kind in NAMESPACES), links, files]

    before = state()
    preflight.inspect()

    assert state() == before


def test_a_probe_that_dies_is_blamed_and_the_answers_before_it_are_kept() -> None:
    program = 'import os; print(\'{"probe": "a", "ok": true, "seen": "there"}\', flush=True); os.abort()'
    child = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True)

    got = preflight._wait(child, ["a", "b", "c"])

    assert set(got) == {"a", "b"}
    assert got["a"].ok
    assert not got["b"].ok
    assert "-6" in got["b"].seen


def test_a_probe_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "PROBE_TIMEOUT_S", 0.2)
    program = "import signal; signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True)

    got = preflight._wait(child, ["a"])

    assert "no answer within" in got["a"].seen
    assert child.returncode is not None


@pytest.mark.parametrize(
    ("content", "frequency"),
    [(b"CONFIG_HZ_250=y\nCONFIG_HZ=250\n", 250), (b"# CONFIG_HZ=9\nCONFIG_HZ=1000\n", 1000), (b"CONFIG_NET=y\n", None)],
)
def test_the_timer_frequency_is_read_from_the_kernels_configuration(
    content: bytes, frequency: int | None, tmp_path: Path
) -> None:
    plain, packed = tmp_path / "config", tmp_path / "config.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))

    assert machine.find_hz([plain]) == frequency
    assert machine.find_hz([packed]) == frequency


def test_a_configuration_that_is_absent_or_broken_is_passed_over(tmp_path: Path) -> None:
    broken, good = tmp_path / "config.gz", tmp_path / "config"
    broken.write_bytes(gzip.compress(b"CONFIG_HZ=100\n")[:-9])
    good.write_bytes(b"CONFIG_HZ=300\n")

    assert machine.find_hz([tmp_path / "absent", broken, good]) == 300
    assert machine.find_hz([tmp_path / "absent"]) is None


def test_versions_name_the_lab_the_kernel_and_the_libraries() -> None:
    versions = preflight.versions()

    assert {"lab", "kernel", "python", "pyroute2", "python-iptables", "scapy"} <= set(versions)
    assert versions["kernel"] == os.uname().release
    versions.clear()
    assert preflight.versions(), "a caller's copy is its own"
