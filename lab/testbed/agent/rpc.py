"""Calls from the caller's threads to an object in another process, over a Unix stream socket.

A request is ``(number, method, args, kwargs)``, a reply ``(number, error, value)``, both pickled behind a length. One
call at a time: the caller's own thread reads the reply, so that no hand-over between threads lies in the path of a cut.
Numbers let a call that was interrupted (Ctrl-C, deadline) leave its late reply to be thrown away by the next one.

Pickle is safe here: both ends are this program, on a socket that nothing else ever holds.
"""

import array
import contextlib
import os
import pickle
import socket
import struct
import threading
import traceback
from typing import Any, NamedTuple

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError
from lab.testbed.agent.loop import Loop

CALL_TIMEOUT_S = 30.0
"""How long a call may take before the agent counts as stuck; calls take milliseconds."""

_LENGTH = struct.Struct("!I")
_CREDENTIALS = struct.Struct("=iII")
_FD = struct.Struct("=i")
_ANCILLARY_BYTES = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_FD.size)
_CHUNK = 1 << 16


class Attached(NamedTuple):
    """A result and what only the kernel can carry to another process."""

    value: Any

    pid: int = 0
    """A process id of this PID namespace; the reader gets it in its own. 0 for none."""

    fd: int = -1
    """A descriptor, which the sender's side closes once it is sent; -1 for none."""


Request = tuple[int, str, tuple[Any, ...], dict[str, Any]]
"""Number, method, args, kwargs; a plain tuple, which pickle takes apart five microseconds faster than a named one."""


class Inbox:
    """Whole messages of a stream socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self.pid = 0
        """Process id that came with the last message, in this process's PID namespace; 0 where none did."""

        self.fd = -1
        """Descriptor that came since it was last taken from here; -1 where none did."""

    def receive(self) -> Any:
        """The next message, or None at the end of the stream; blocks as the socket does."""
        while (message := self._take()) is None:
            data, ancillary, _, _ = self._sock.recvmsg(_CHUNK, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC)
            if not data:
                return None
            for _, kind, payload in ancillary:
                if kind == socket.SCM_CREDENTIALS:
                    self.pid = _CREDENTIALS.unpack(payload)[0]
                elif kind == socket.SCM_RIGHTS:
                    self.fd = _FD.unpack(payload)[0]
            self._buffer += data
        return pickle.loads(message)  # noqa: S301 - see the module's docstring

    def drop_fd(self) -> None:
        """Close a descriptor that nobody waits for any more."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _take(self) -> bytes | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) < end:
            return None
        message = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return message


def frame(message: Any) -> bytes:
    """A message as it travels.

    Raises:
        Exception: whatever pickle raises for what cannot be pickled.
    """
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Channel:
    """The caller's end; any thread may call, one call runs at a time.

    Args:
        sock: Connected stream socket; the channel owns it.
        peer: Who answers, for messages: "the router's firewall".
    """

    def __init__(self, sock: socket.socket, peer: str) -> None:
        self._sock = sock
        self._peer = peer
        self._lock = threading.Lock()
        self._number = 0
        self._inbox = Inbox(sock)
        self._closed = False
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._timeout_s = 0.0
        self._set_timeout(CALL_TIMEOUT_S)

    def call(self, method: str, *args: Any, timeout_s: float = CALL_TIMEOUT_S, **kwargs: Any) -> Any:
        """The result of a method of the served object; what it raised is raised here.

        Raises:
            TimeoutError: no answer in time.
            InvalidRun: the process behind the channel is gone.
        """
        return self.call_attached(method, *args, timeout_s=timeout_s, **kwargs).value

    def call_attached(self, method: str, *args: Any, timeout_s: float = CALL_TIMEOUT_S, **kwargs: Any) -> Attached:
        """The same, with the process id and the descriptor that came with the answer."""
        with self._lock:
            if timeout_s != self._timeout_s:
                self._set_timeout(timeout_s)
            self._number += 1
            try:
                self._sock.sendall(frame((self._number, method, args, kwargs)))
                error, value = self._reply(self._number)
            except BlockingIOError:
                raise TimeoutError(f"{self._peer} did not answer {method} within {timeout_s:g} s.") from None
            except OSError as problem:
                raise self._gone(method) from problem
            pid, fd, self._inbox.fd = self._inbox.pid, self._inbox.fd, -1
        if error is not None:
            raise error
        return Attached(value, pid, fd)

    def close(self) -> None:
        """End the channel; a call that waits fails. Idempotent."""
        if not self._closed:
            self._closed = True
            # Wakes a thread that waits for a reply; only then is the lock free.
            _shutdown(self._sock)
            with self._lock:
                self._sock.close()

    def abandon(self) -> None:
        """In a fork of the caller: close without a sign to the peer, whatever the locks say."""
        self._closed = True
        self._sock.close()

    def _reply(self, number: int) -> tuple[BaseException | None, Any]:
        while (message := self._inbox.receive()) is not None:
            if message[0] == number:
                return message[1], message[2]
            self._inbox.drop_fd()
        raise ConnectionResetError(f"{self._peer} is gone")

    def _gone(self, method: str) -> LabError:
        if self._closed:
            return InvalidRun(f"The testbed was closed before {self._peer} answered {method}.")
        return InvalidRun(f"{self._peer} ended unexpectedly before it answered {method}.")

    def _set_timeout(self, timeout_s: float) -> None:
        # In the kernel rather than by settimeout: that would add a poll to every read.
        seconds = int(timeout_s)
        value = struct.pack("@ll", seconds, max(1, int((timeout_s - seconds) * 1e6)))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
        self._timeout_s = timeout_s


def serve(service: object, sock: socket.socket) -> None:
    """Answer calls of the service's public methods, one by one, until the other end closes."""
    inbox = Inbox(sock)
    while (request := inbox.receive()) is not None:
        answer(service, request, sock)


def serve_in(loop: Loop, service: object, sock: socket.socket) -> None:
    """The same beside whatever else the loop does; it is stopped when the other end closes."""
    inbox = Inbox(sock)

    def on_call() -> None:
        request = inbox.receive()
        if request is None:
            loop.stop()
        else:
            answer(service, request, sock)

    loop.add_reader(sock.fileno(), on_call)


def answer(service: object, request: Request, sock: socket.socket) -> None:
    """Make one call and send what came of it."""
    number, method, args, kwargs = request
    error: BaseException | None = None
    value: Any = None
    try:
        if method.startswith("_"):
            raise AttributeError(f"{method} is not public")
        attribute = getattr(service, method)
        value = attribute(*args, **kwargs) if callable(attribute) else attribute
    except Exception as problem:  # noqa: BLE001 - every failure travels to the caller
        error = _portable(problem)
    attached = value if isinstance(value, Attached) else Attached(value)
    try:
        data = frame((number, error, attached.value))
    except Exception as problem:  # noqa: BLE001 - what a service returns may be anything
        data = frame((number, TypeError(f"The result of {method} cannot be sent: {problem}"), None))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        # A caller that is gone is noticed at the next read.
        _send(sock, data, attached)
    if attached.fd >= 0:
        os.close(attached.fd)


def _send(sock: socket.socket, data: bytes, attached: Attached) -> None:
    ancillary = []
    if attached.pid:
        credentials = _CREDENTIALS.pack(attached.pid, os.geteuid(), os.getegid())
        ancillary.append((socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials))
    if attached.fd >= 0:
        ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, _FD.pack(attached.fd)))
    if ancillary:
        try:
            data = data[sock.sendmsg([data], ancillary) :]
        except PermissionError:
            # Another process's id may be told with CAP_SYS_ADMIN over its PID namespace only; a container has that not.
            data = data[sock.sendmsg([data], [one for one in ancillary if one[1] != socket.SCM_CREDENTIALS]) :]
    sock.sendall(data)


def _portable(error: Exception) -> Exception:
    """The error itself, with the remote traceback as a note, or a stand-in where it cannot be pickled."""
    if not isinstance(error, LabError):
        error.add_note("In the agent:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - whatever an exception's own pickling does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def too_many_files() -> EnvironmentNotReady:
    """What to say when this process had no room for a descriptor that was sent to it."""
    return EnvironmentNotReady("This process has too many open files; a testbed needs six.", fix="ulimit -n 4096")


def _shutdown(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def send_with_fds(sock: socket.socket, message: Any, fds: list[int]) -> None:
    """Send one message with descriptors over a packet-preserving socket."""
    sock.sendmsg([pickle.dumps(message)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def receive_with_fds(sock: socket.socket, most: int, limit: int = 1 << 20) -> tuple[Any, list[int]]:
    """One message and its descriptors, close-on-exec; None at the end of the stream."""
    data, fds, _, _ = socket.recv_fds(sock, limit, most, socket.MSG_CMSG_CLOEXEC)
    return (pickle.loads(data) if data else None), list(fds)  # noqa: S301 - see the module's docstring
