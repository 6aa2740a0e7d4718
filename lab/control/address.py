"""Where the controller listens: ``127.0.0.1:8474``, ``[::1]:8474``, or ``unix:/run/lab.sock``."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, UsageError

LONGEST_PATH = 107
"""Octets that ``sockaddr_un`` has room for."""

_BACKLOG = 128
_FORM = "write HOST:PORT, [ADDRESS]:PORT or unix:PATH"


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    """0 takes a free one."""

    path: Path | None = None

    @property
    def unix(self) -> bool:
        """Whether it is a Unix socket."""
        return self.path is not None

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """An address as a command line has it.

    Raises:
        UsageError: it is none.
    """
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:")).absolute()
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise UsageError(
                f"A socket's path has at most {LONGEST_PATH} octets; {path} has more.", fix="choose a shorter one"
            )
        return Address(path=path)
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"An address to listen on was expected; {text!r} is none.", fix=_FORM)
    return Address(host, int(port))


@contextlib.contextmanager
def listening(address: Address) -> Iterator[tuple[socket.socket, Address]]:
    """A socket that listens there, and the address with the port that it got; a Unix socket's file goes with it.

    Raises:
        UsageError: something else listens there, or the place does not exist.
        EnvironmentNotReady: the kernel refuses.
    """
    if address.path is not None:
        with _listening_unix(address.path) as opened:
            yield opened, address
        return
    try:
        family, *_, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        opened = socket.create_server(where[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _refusal(address, error) from error
    with opened:
        yield opened, Address(address.host, opened.getsockname()[1])


@contextlib.contextmanager
def _listening_unix(path: Path) -> Iterator[socket.socket]:
    address = Address(path=path)
    try:
        _remove_dead(path)
    except OSError as error:
        raise _refusal(address, error) from error
    with socket.socket(socket.AF_UNIX) as opened:
        before = os.umask(0o177)
        try:
            # The file is this user's alone from its first moment on.
            opened.bind(str(path))
        except OSError as error:
            raise _refusal(address, error) from error
        finally:
            os.umask(before)
        ours = path.stat().st_ino
        try:
            opened.listen(_BACKLOG)
            yield opened
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_ino == ours:
                    path.unlink()


def _remove_dead(path: Path) -> None:
    """Remove a socket that nobody listens on any more; its owner was killed."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UsageError(f"{path} exists and is no socket.", fix="choose another path")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _refusal(address: Address, error: OSError) -> UsageError | EnvironmentNotReady:
    if error.errno == errno.EADDRINUSE:
        return UsageError(f"Something else listens on {address}.", fix="choose another with --listen, or end it")
    if isinstance(error, FileNotFoundError | NotADirectoryError | socket.gaierror):
        return UsageError(f"There is no place {address}: {error.strerror}.", fix=_FORM)
    return EnvironmentNotReady(f"The kernel refuses to listen on {address}: {error.strerror}.", fix="choose another")
