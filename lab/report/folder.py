"""The folder that everything about one run lies in.

::

    record.json      settings, prediction, observation, checks, outcome (``lab.report.record``)
    timeline.jsonl   one observation a line (``lab.report.timeline``)
    left.pcapng      capture of the router's interface towards the client
    right.pcapng     the same towards the server
    client.log       what the client program printed; server.log likewise
    report.md        the summary, rebuilt from the two files on top; figure.png and figure.svg likewise
"""

import contextlib
import errno
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from lab.core.errors import EnvironmentNotReady, LabError, UsageError
from lab.report.record import SCHEMA, Record

RECORD = "record.json"
TIMELINE = "timeline.jsonl"
REPORT = "report.md"
FIGURES = ("figure.png", "figure.svg")
_DEFAULT_PARENT = Path("runs")
_PROBE_BYTES = 64 * 1024
"""Written and removed once, so that a full disk is found before the run and not at its end."""


class RunFolder:
    """A run folder that exists.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, name: str, *, started: datetime, out: Path | None = None) -> Self:
        """A folder without anything of an earlier run in it.

        Args:
            name: What is run, in a word or two; part of the default folder's name.
            started: Wall time; the other part.
            out: The folder to use, empty or new; ``runs/<time>-<name>`` where None.

        Raises:
            UsageError: ``out`` is a file, or holds something: an earlier run is evidence, and never overwritten.
            EnvironmentNotReady: it cannot be written to, or its disk is full.
        """
        path = out if out is not None else _unused(_DEFAULT_PARENT / f"{started:%Y%m%d-%H%M%S}-{_slug(name)}")
        with writing(path):
            _refuse_foreign(path)
            path.mkdir(parents=True, exist_ok=True)
            _probe(path)
        return cls(path)

    def file(self, name: str) -> Path:
        """Where an artefact of that name belongs."""
        return self.path / name

    def write_record(self, record: Record) -> None:
        """Put ``record.json`` in place whole: a reader, or a crash, sees the old one or the new one.

        Raises:
            ValueError: no reader would accept it, such as a confirmation with failed checks.
            EnvironmentNotReady: the folder cannot be written to, or its disk is full.
        """
        text = record.to_json()
        # A record that was put together by copying has never been validated as a whole.
        Record.model_validate_json(text)
        write_whole(self.file(RECORD), text.encode())

    def read_record(self) -> Record:
        """The record.

        Raises:
            UsageError: there is none, it is broken, or a newer lab wrote it.
        """
        path = self.file(RECORD)
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            within = sorted(self.path.glob(f"*/*/{RECORD}"))
            fix = (
                f"name one of those within, as {within[0].parent}." if within else "name a folder that `lab run` wrote."
            )
            raise UsageError(f"{self.path} is not a run folder: it has no {RECORD}.", fix=fix) from None
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
        return parse_record(text, path)

    def artefacts(self) -> tuple[str, ...]:
        """Every file in the folder, relative to it, sorted; unfinished temporary files are left out."""
        files = (path for path in self.path.rglob("*") if path.is_file() and not path.name.startswith("."))
        return tuple(sorted(path.relative_to(self.path).as_posix() for path in files))


def parse_record(text: bytes, path: Path) -> Record:
    """A record from its JSON.

    Args:
        text: The file's content.
        path: The file, for messages.

    Raises:
        UsageError: it is not JSON, not a record, or of a schema that this version does not know.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.") from error
    if not isinstance(data, dict) or "schema" not in data:
        raise UsageError(f"{path} is not a run's record: it has no key `schema`.")
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        raise UsageError(
            f"{path} has schema {data['schema']!r}, this version of the lab reads schema {SCHEMA}.",
            fix="read it with the version that wrote it (key `versions.lab`).",
        )
    try:
        return Record.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UsageError(f"{path} is broken at {where}: {first['msg']}{more}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step, its content on the disk before its name.

    Raises:
        EnvironmentNotReady: the folder cannot be written to, or its disk is full.
    """
    with writing(path.parent):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            _write_synced(temporary, content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what goes wrong while writing below ``path`` into an error with its fix."""
    try:
        yield
    except OSError as error:
        raise _explained(path, error) from error


def _explained(path: Path, error: OSError) -> LabError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EnvironmentNotReady(
            f"No space left for {path}.", fix="free some, or name another folder with --out DIR."
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return EnvironmentNotReady(f"{path} cannot be written to ({error.strerror}).", fix="name another: --out DIR.")
    if error.errno in {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}:
        return UsageError(f"{path} cannot be a run folder: {error.strerror}.", fix="name another: --out DIR.")
    return EnvironmentNotReady(f"{path} cannot be written to ({error.strerror}).")


def _refuse_foreign(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder.", fix="name another: --out DIR.")
    try:
        found = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise _explained(path, error) from error
    if TIMELINE in found or _is_record(path / RECORD):
        raise UsageError(
            f"{path} holds an earlier run, which is kept.", fix="name a new folder with --out, or remove it."
        )
    if found:
        seen = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        raise UsageError(f"{path} holds {seen}, which no run has written.", fix="name an empty or a new folder.")


def _is_record(path: Path) -> bool:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and "schema" in data and "outcome" in data


def _unused(path: Path) -> Path:
    """The path, or the first of path-2, path-3 ... that does not exist: two runs in a second are two folders."""
    candidate, number = path, 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "run"


def _write_synced(path: Path, content: bytes) -> None:
    """Make a file whose content is on the disk.

    It has no name until then (``O_TMPFILE``, open(2)), where the file system can do that: a SIGKILL while the disk is
    waited for leaves nothing.
    """
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(descriptor, 0o644)
        os.fsync(descriptor)
        if not path.exists():
            # Python follows the link into /proc only where it is given a folder, which an absolute path does not use.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)


def _probe(path: Path) -> None:
    """See that the folder takes files, and the disk has room; nothing of it ever has a name."""
    with tempfile.TemporaryFile(dir=path) as file:
        file.write(bytes(_PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())
