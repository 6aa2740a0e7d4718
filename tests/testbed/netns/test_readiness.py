import errno
import os
from collections.abc import Callable

import pytest

from lab.core.errors import EnvironmentNotReady
from lab.testbed.netns.readiness import explain, read_setting


def settings(**values: str) -> Callable[[str], str | None]:
    return lambda path: values.get(path.rpartition("/")[2])


@pytest.mark.parametrize(
    ("code", "known", "fix"),
    [
        (errno.ENOSPC, {}, "sudo sysctl -w user.max_user_namespaces=15000 user.max_net_namespaces=15000"),
        (errno.EPERM, {"max_user_namespaces": "0"}, "sudo sysctl -w user.max_user_namespaces=15000"),
        (
            errno.EPERM,
            {"apparmor_restrict_unprivileged_userns": "1"},
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (errno.EPERM, {"unprivileged_userns_clone": "0"}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        (errno.EPERM, {}, "docker run --security-opt seccomp=unconfined"),
        (errno.EOPNOTSUPP, {}, "sudo modprobe veth"),
    ],
)
def test_each_restriction_has_its_fix(
    monkeypatch: pytest.MonkeyPatch, code: int, known: dict[str, str], fix: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    error = explain(OSError(code, "unshare: refused"), settings(**known))

    assert isinstance(error, EnvironmentNotReady)
    assert error.fix is not None
    assert error.fix.startswith(fix)


def test_restrictions_of_ordinary_users_do_not_explain_roots_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    error = explain(OSError(errno.EPERM, "unshare"), settings(apparmor_restrict_unprivileged_userns="1"))

    assert isinstance(error, EnvironmentNotReady)
    assert error.fix is not None
    assert error.fix.startswith("docker run")


def test_a_kernel_without_namespaces_is_told_from_other_invalid_arguments() -> None:
    lacking = explain(OSError(errno.EINVAL, "unshare: Invalid argument"), settings())
    other = OSError(errno.EINVAL, "rtnetlink request 3: Invalid argument")

    assert "CONFIG_USER_NS" in str(lacking)
    assert explain(other, settings()) is other


def test_what_is_not_the_kernels_refusal_stays_as_it_is() -> None:
    error = ValueError("a defect")

    assert explain(error) is error


def test_a_missing_setting_is_none() -> None:
    assert read_setting("/proc/sys/no/such/key") is None
    assert read_setting("/proc/sys/kernel/ostype") == "Linux"
