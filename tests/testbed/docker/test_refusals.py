"""An engine's words, as Docker 20.10 and 28 say them, and whose fault each is."""

import pytest

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.testbed.docker import refusals

OLD = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
    "{}: unknown"
)
NEW = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: {}"
)
INIT = "error during container init: "
PLACE = "fsmount:fscontext:proc/./sys/net/ipv4"


@pytest.mark.parametrize(
    ("said", "kind", "names"),
    [
        ("No such image: nginx:1.27", EnvironmentNotReady, "docker pull nginx:1.27"),
        ("No such image: blackhole-lab/lab:0.1.0", EnvironmentNotReady, "Fix: lab image build"),
        (
            "pull access denied for x, repository does not exist or may require 'docker login'",
            EnvironmentNotReady,
            "load",
        ),
        ('Get "https://registry.example/v2/": dial tcp: no such host', EnvironmentNotReady, "cannot be pulled"),
        (
            "driver failed programming connectivity: Bind for 127.0.0.1:8474 failed: port is already allocated",
            EnvironmentNotReady,
            "127.0.0.1:8474",
        ),
        (
            "Error starting userland proxy: listen tcp4 127.0.0.1:8474: bind: address already in use",
            EnvironmentNotReady,
            "127.0.0.1:8474",
        ),
        (
            OLD.format(f"{INIT}open /proc/sys/net/ipv4/tcp_rto_max_ms: no such file or directory"),
            Unsupported,
            "no net.ipv4.tcp_rto_max_ms in",
        ),
        (
            NEW.format(
                f"{INIT}open sysctl net.ipv4.tcp_rto_max_ms file: unsafe procfs detected: openat2 "
                f"{PLACE}/tcp_rto_max_ms: no such file or directory"
            ),
            Unsupported,
            "no net.ipv4.tcp_rto_max_ms in",
        ),
        (
            OLD.format(f"{INIT}write /proc/sys/net/ipv4/tcp_retries2: invalid argument"),
            UsageError,
            "value for net.ipv4.tcp_retries2",
        ),
        (
            NEW.format(
                f'{INIT}failed to write sysctl net.ipv4.tcp_retries2 = "-1": '
                f"write {PLACE}/tcp_retries2: invalid argument"
            ),
            UsageError,
            "value for net.ipv4.tcp_retries2",
        ),
        (
            OLD.format(f"{INIT}write /proc/sys/net/ipv4/tcp_congestion_control: operation not permitted"),
            EnvironmentNotReady,
            "tcp_allowed_congestion_control",
        ),
        (
            NEW.format(
                f'{INIT}failed to write sysctl net.ipv4.tcp_congestion_control = "cubic": write '
                f"{PLACE}/tcp_congestion_control: operation not permitted"
            ),
            EnvironmentNotReady,
            "tcp_allowed_congestion_control",
        ),
        (
            OLD.format(f"{INIT}write /proc/sys/net/ipv4/tcp_congestion_control: no such file or directory"),
            Unsupported,
            "choose another net.ipv4.tcp_congestion_control",
        ),
        (
            NEW.format(f"{INIT}open sysctl net.core.rmem_max file: reopen fd 8: permission denied"),
            Unsupported,
            "leave net.core.rmem_max out",
        ),
        (
            'runc create failed: sysctl "vm.swappiness" is not in a separate kernel namespace: unknown',
            UsageError,
            "vm.swappiness",
        ),
        (
            'interface specific sysctl setting "net.ipv4.conf.eth0.rp_filter" must be supplied using driver option',
            Unsupported,
            "net.ipv4.conf.eth0.rp_filter",
        ),
        ('invalid CapAdd: unknown capability: "CAP_CHECKPOINT_RESTORE"', Unsupported, "CAP_CHECKPOINT_RESTORE"),
        (
            OLD.format('exec: "/srv/run": stat /srv/run: no such file or directory'),
            UsageError,
            "command /srv/run is not",
        ),
        (
            NEW.format(f'{INIT}exec: "/srv/run": stat /srv/run: no such file or directory'),
            UsageError,
            "command /srv/run is not",
        ),
        (OLD.format('exec: "serve": executable file not found in $PATH'), UsageError, "command serve is not"),
        (OLD.format('exec: "/etc": permission denied'), UsageError, "/etc cannot be executed"),
        ("exec /srv/run: exec format error", UsageError, "/srv/run cannot be executed"),
        ("No command specified", UsageError, "no command of its own"),
        ("write /var/lib/docker/overlay2/x: no space left on device", EnvironmentNotReady, "docker system df"),
        (
            "could not find an available, non-overlapping IPv4 address pool among the defaults to assign",
            EnvironmentNotReady,
            "lab clean",
        ),
        ("all predefined address pools have been fully subnetted", EnvironmentNotReady, "lab clean"),
        ('invalid mount config for type "bind": bind source path does not exist: /run/x', Unsupported, "/run/x"),
        ("cannot join network of a non running container: 3a13", InvalidRun, "ended"),
        ("cannot join network namespace of a non running container: container x is exited", InvalidRun, "ended"),
        ("joining network namespace of container: No such container: 043a", InvalidRun, "ended"),
        ("Container 3a13 is not running", InvalidRun, "ended"),
        ("container is marked for removal and cannot be started", InvalidRun, "ended"),
        ("fork/exec /usr/bin/containerd-shim: resource temporarily unavailable", EnvironmentNotReady, "no room"),
        (NEW.format(f"{INIT}unable to apply caps: operation not permitted"), EnvironmentNotReady, "may not do"),
        ("something that nobody foresaw", EnvironmentNotReady, "something that nobody foresaw"),
    ],
)
def test_each_refusal_is_told_with_whose_fault_it_is(said: str, kind: type[LabError], names: str) -> None:
    error = refusals.explain(said)

    assert type(error) is kind
    assert names in str(error)
    assert "runc create failed" not in str(error)
    assert not str(error).endswith("unknown")
