import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.control.address import Address, listening, parse
from lab.core.errors import EnvironmentNotReady, UsageError


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for a socket's path, which pytest's own folders may not be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8474", Address("127.0.0.1", 8474)),
        ("[::1]:0", Address("::1", 0)),
        ("localhost:1", Address("localhost", 1)),
        ("unix:/run/lab.sock", Address(path=Path("/run/lab.sock"))),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: Address) -> None:
    assert parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "8474", ":8474", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "unix:/" + "x" * 200]
)
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert refused.value.fix


def test_a_unix_socket_is_its_users_alone_and_goes_at_the_end(folder: Path) -> None:
    path = folder / "c.sock"
    before = os.umask(0)
    os.umask(before)
    with listening(Address(path=path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
    assert os.umask(before) == before


def test_a_socket_that_somebody_listens_on_is_left_alone(folder: Path) -> None:
    path = folder / "c.sock"
    with (
        listening(Address(path=path)),
        pytest.raises(UsageError, match="Something else listens"),
        listening(Address(path=path)),
    ):
        pass
    assert not path.exists()


def test_a_socket_that_a_killed_owner_left_is_replaced(folder: Path) -> None:
    path = folder / "c.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening(Address(path=path)) as (opened, _), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        opened.accept()[0].close()


def test_a_file_that_is_no_socket_is_left_alone(folder: Path) -> None:
    path = folder / "c.sock"
    path.write_text("precious")
    with pytest.raises(UsageError, match="is no socket"), listening(Address(path=path)):
        pass
    assert path.read_text() == "precious"


def test_a_socket_that_may_not_be_looked_at_is_said_with_a_fix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", refuse)
    with (
        pytest.raises(EnvironmentNotReady, match=r"Permission denied.* Fix: choose another"),
        listening(Address(path=folder / "c.sock")),
    ):
        pass


def test_a_folder_that_is_not_there_is_a_usage_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="There is no place"), listening(Address(path=folder / "nix" / "c.sock")):
        pass


def test_a_port_that_is_taken_is_a_usage_error_and_a_free_one_is_told() -> None:
    with listening(Address("127.0.0.1", 0)) as (_, place):
        assert place.port > 0
        with pytest.raises(UsageError, match="Something else listens"), listening(place):
            pass


def test_a_name_that_does_not_resolve_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="There is no place"), listening(Address("name.invalid", 1)):
        pass
