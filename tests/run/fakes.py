"""Stand-ins for what a run looks at and waits for; nothing here takes any time."""

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from lab.core.errors import Unsupported, UsageError
from lab.core.fault import Fault, Matched
from lab.core.flow import Endpoint, FourTuple
from lab.core.kernel import KNOBS, LINUX_DEFAULTS
from lab.core.socket import SocketOptions, SocketSample, TcpState, Timer
from lab.run.patience import Patience
from lab.testbed.ports import Counters, CutReceipt, Line, SocketTrack, Testbed

CLIENT = Endpoint("192.0.2.10", 40000)
SERVER = Endpoint("198.51.100.20", 5000)
FLOW = FourTuple(CLIENT, SERVER)
FAULT = Fault(FLOW)


class Clock(threading.Event):
    """Time that passes only while somebody waits for it.

    Args:
        now: What it shows at first, seconds.
    """

    def __init__(self, now: float = 100.0) -> None:
        super().__init__()
        self.now = now
        self.at: list[tuple[float, Callable[[], None]]] = []
        """What happens at which instant."""

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "a run never waits for ever"
        self.now += timeout
        for due in [pair for pair in self.at if pair[0] <= self.now]:
            self.at.remove(due)
            due[1]()
        return self.is_set()

    def patience(self) -> Patience:
        return Patience(self, now=lambda: self.now)


class Wake(threading.Event):
    """A wake-up whose wait lets the clock's time pass, up to the instant at which something sets it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "a run never waits for ever"
        until = self._clock.now + timeout
        while not self.is_set() and self._clock.now < until:
            due = [at for at, _ in self._clock.at if self._clock.now < at <= until]
            self._clock.wait(min(due, default=until) - self._clock.now)
        return self.is_set()


def sample(at: float = 100.0, local: Endpoint = CLIENT, remote: Endpoint = SERVER, **changes: Any) -> SocketSample:
    """An established, idle socket that has talked."""
    plain = SocketSample(
        at=at,
        local=local,
        remote=remote,
        state=TcpState.ESTABLISHED,
        timer=Timer.OFF,
        expires_s=None,
        backoff=0,
        retransmits=0,
        rto_s=0.204,
        srtt_s=0.0001,
        rttvar_s=0.0001,
        unacked=0,
        total_retrans=0,
        not_sent_bytes=0,
        bytes_acked=22,
        bytes_received=21,
        recv_queue=0,
        send_queue=0,
        last_data_sent_s=0.5,
        last_data_received_s=0.5,
        last_ack_received_s=0.5,
        peer_window=65536,
        inode=7001,
    )
    return replace(plain, **changes)


def listener(port: int = SERVER.port, address: str = "0.0.0.0") -> SocketSample:
    return sample(local=Endpoint(address, port), remote=Endpoint("0.0.0.0", 0), state=TcpState.LISTEN)


@dataclass
class FakeProcess:
    """A program; the test writes its output and ends it."""

    argv: Sequence[str] = ("prog",)
    lines: list[Line] = field(default_factory=list)
    returncode: int | None = None
    exited_at: float | None = None
    pid: int = 1
    started_at: float = 0.0
    lost_bytes: int = 0
    written: list[str] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    hearers: list[Callable[[Line], None]] = field(default_factory=list)

    def say(self, at: float, text: str) -> None:
        self.lines.append(Line(at, "stdout", text))
        for hear in self.hearers:
            hear(self.lines[-1])

    def listen(self, hear: Callable[[Line], None]) -> None:
        for line in self.lines:
            hear(line)
        self.hearers.append(hear)

    def exit(self, at: float, status: int = 0) -> None:
        self.exited_at, self.returncode = at, status

    def wait_for_line(self, pattern: str | re.Pattern[str], timeout_s: float, *, since: float = 0.0) -> Line:
        for line in self.lines:
            if line.at >= since and re.search(pattern, line.text):
                return line
        raise TimeoutError(f"no line matched within {timeout_s:g} s")

    def wait(self, timeout_s: float) -> int:
        if self.returncode is None:
            raise TimeoutError(f"still runs after {timeout_s:g} s")
        return self.returncode

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def write(self, text: str) -> None:
        self.written.append(text)

    def close_stdin(self) -> None:
        pass


def sysctls_of_linux() -> dict[str, str]:
    """A namespace that nobody changed, as /proc shows it."""
    return {
        "net.ipv4.tcp_congestion_control": "bbr",
        "net.ipv4.tcp_no_metrics_save": "0",
        **{knob.sysctl: str(int(getattr(LINUX_DEFAULTS, knob.field))) for knob in KNOBS},
    }


@dataclass
class FakeNode:
    """A node whose sockets, settings and programs the test sets."""

    name: str = "client"
    ipv4: str = CLIENT.address
    ipv6: str = "2001:db8:1::10"
    socks: list[SocketSample] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=sysctls_of_linux)
    refused: dict[str, set[str]] = field(default_factory=dict)
    """Values that the kernel does not take, per sysctl."""

    programs: list[FakeProcess] = field(default_factory=list)
    """What ``spawn`` and ``spawn_module`` give, in turn."""

    count: dict[str, int] = field(default_factory=dict)
    nudges: list[tuple[Endpoint, Endpoint]] = field(default_factory=list)
    history: SocketTrack = field(default_factory=lambda: SocketTrack((), None, 0.0))
    options: SocketOptions | None = None

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,  # noqa: ARG002 - the port's signature
        cwd: Path | None = None,  # noqa: ARG002 - the port's signature
    ) -> FakeProcess:
        started = self.programs.pop(0)
        started.argv = argv
        return started

    def spawn_module(self, module: str, argv: Sequence[str] = ()) -> FakeProcess:
        return self.spawn((module, *argv))

    def nudge(self, source: Endpoint, destination: Endpoint) -> None:
        self.nudges.append((source, destination))

    def sockets(self) -> Sequence[SocketSample]:
        return list(self.socks)

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:  # noqa: ARG002 - the port's
        return self.options

    def watch(self, flow: FourTuple) -> None:
        pass

    def track(self, flow: FourTuple) -> SocketTrack:  # noqa: ARG002 - the port's signature
        return self.history

    def counters(self) -> Counters:
        return dict(self.count)

    def read_sysctl(self, name: str) -> str:
        if name not in self.settings:
            raise Unsupported(f"This kernel has no {name} in a network namespace.")
        return self.settings[name]

    def write_sysctl(self, name: str, value: str) -> None:
        self.read_sysctl(name)
        if value in self.refused.get(name, ()):
            raise UsageError(f"The kernel refuses {value!r} for {name}.")
        self.settings[name] = value


@dataclass
class FakeRouter(FakeNode):
    """A router whose rules have matched what the test says, reading by reading."""

    name: str = "router"
    readings: Iterator[Matched] = field(default_factory=lambda: itertools.repeat(Matched(3, 1)))

    def matched(self, fault: Fault) -> Matched:  # noqa: ARG002 - the port's signature
        return next(self.readings)

    def heal(self, fault: Fault) -> CutReceipt:  # noqa: ARG002 - the port's signature
        return CutReceipt(0.0, 0.0)


@dataclass
class FakeTestbed:
    client: FakeNode = field(default_factory=FakeNode)
    router: FakeRouter = field(default_factory=FakeRouter)
    server: FakeNode = field(default_factory=lambda: FakeNode("server", SERVER.address, "2001:db8:2::20"))


def nodes(**changes: Any) -> tuple[FakeTestbed, Testbed]:
    made = FakeTestbed(**changes)
    return made, cast("Testbed", made)
