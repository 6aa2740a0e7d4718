"""The router that this process is in: the rules are made here, the capture runs in a process beside this one.

scapy takes longer to load than all the rest, so that the capture's process starts first and is waited for last.
"""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from lab.control.child import python
from lab.core.errors import InvalidRun
from lab.core.fault import Fault, Matched
from lab.testbed.agent.hosted import CAPTURE
from lab.testbed.agent.rpc import Channel
from lab.testbed.conntrack import date_flows, passing_flows
from lab.testbed.counters import read_counters
from lab.testbed.firewall import open_firewall
from lab.testbed.ports import CaptureSummary, Counters, CutReceipt, PassingFlow

_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 1.0


class LocalRouter:
    """Fulfils ``ControlledRouter`` in the network namespace of this process; a context manager.

    Args:
        left: The interface towards the client.
        right: The interface towards the server.
        firewall: iptables, nftables or auto.

    Raises:
        Unsupported: this kernel lacks what a cut needs.
        EnvironmentNotReady: a library or a privilege is missing.
    """

    def __init__(self, left: str, right: str, firewall: str = "auto") -> None:
        with contextlib.ExitStack() as undo:
            near, self._process = _start_capture_process(firewall, left, right)
            undo.callback(self._end_process)
            self._capture = Channel(near, "The capture")
            undo.callback(self._capture.close)
            with _without_compilers():
                self._firewall = open_firewall(firewall)
            undo.callback(self._firewall.close)
            date_flows()
            self._undo = undo.pop_all()

    @property
    def firewall(self) -> str:
        """Which implementation owns the rules."""
        return self._firewall.name

    def prepare(self, fault: Fault) -> None:
        """Build the fault's rules without putting them in force."""
        self._firewall.prepare(fault)

    def cut(self, fault: Fault) -> CutReceipt:
        """Put the fault in force."""
        return self._firewall.cut(fault)

    def heal(self, fault: Fault) -> CutReceipt:
        """Take the fault back."""
        return self._firewall.heal(fault)

    def matched(self, fault: Fault) -> Matched:
        """Packets that the fault's rules dropped."""
        return self._firewall.matched(fault)

    def forget(self, fault: Fault) -> None:
        """Remove the rules of a fault that is not in force."""
        self._firewall.forget(fault)

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass."""
        return passing_flows()

    def counters(self) -> Counters:
        """All counters of the namespace."""
        return read_counters()

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """Capture both interfaces."""
        arguments = (folder.absolute(), filter_expression, ring_bytes, limit_bytes)
        self._capture.call("start", *arguments, timeout_s=_START_TIMEOUT_S)

    def flush_capture(self) -> CaptureSummary:
        """Write what was caught until now, and go on."""
        return self._summary("flush")

    def stop_capture(self) -> CaptureSummary:
        """Drain, close and summarise."""
        return self._summary("stop")

    def close(self) -> None:
        """Remove every rule and end the capture; idempotent."""
        self._undo.close()

    def __enter__(self) -> Self:
        """The router itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()

    def _summary(self, method: str) -> CaptureSummary:
        summary = self._capture.call(method)
        if not isinstance(summary, CaptureSummary):
            raise InvalidRun(f"A summary was expected of the capture's {method}, not {summary!r}.")
        return summary

    def _end_process(self) -> None:
        # Its channel is closed by now, which ends it.
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start_capture_process(*premises: str) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    near, far = socket.socketpair()
    with far:
        command = python("lab.testbed.agent.hosted", [CAPTURE, str(far.fileno()), *premises])
        # In a session of its own: a Ctrl-C is the controller's to answer.
        process = subprocess.Popen(
            command,
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    return near, process


@contextlib.contextmanager
def _without_compilers() -> Iterator[None]:
    """Keep python-iptables from asking a compiler for old libraries, which takes time and leaves files in /tmp."""
    path = os.environ.get("PATH")
    os.environ["PATH"] = os.devnull
    try:
        yield
    finally:
        if path is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = path
