"""The assistant's command line."""

import argparse
import json
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.core.errors import UsageError
from lab.live.client.backend import COMMIT_AFTER_S, Fault
from lab.live.client.script import Script, parse_script
from lab.live.protocol import paths
from lab.live.recovery.policy import Policy

MODEL = "models/gemini-3.8-live"
"""The study's."""


ADAPTERS = ("wire", "google-genai")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an assistant is started with."""

    url: str
    """Of the session server; without a path, the developer endpoint's is taken. For google-genai its base URL."""

    status: str | None = None
    """The server's status page, which is told of lapses; None: only this side lapses."""

    script: Script = field(default_factory=Script)
    """What to do."""

    policy: Policy = field(default_factory=Policy)
    """What ``recover`` does."""

    adapter: str = "wire"
    """wire, or google-genai for an unmodified client of that name."""

    model: str = MODEL
    text: bool = False
    """Type instead of speaking."""

    replay: bool = False
    """Say again, after a gap, what was said in it."""

    bookings: Path | None = None
    """None keeps them in memory."""

    commit_after_s: float = COMMIT_AFTER_S
    """From the call to the commit, session seconds."""

    fault: Fault = Fault.NONE
    unique: bool = False
    """The database refuses a second booking under one key."""

    ca: Path | None = None
    """Certificate to trust for wss."""


def parser() -> argparse.ArgumentParser:
    """The command line of ``python -m lab.live.client``."""
    made = argparse.ArgumentParser(
        prog="python -m lab.live.client", description="The reference client of live sessions."
    )
    made.add_argument("--url", default="ws://server:8765", help="session server (default %(default)s)")
    made.add_argument("--status", metavar="URL", help="the server's status page, told of lapses")
    made.add_argument("--script", default="[]", metavar="JSON", help="list of steps, or @FILE")
    made.add_argument("--policy", default="{}", metavar="JSON", help="recovery options that differ from the study's")
    made.add_argument("--adapter", choices=ADAPTERS, default="wire", help="what to connect with")
    made.add_argument("--model", default=MODEL, help="(default %(default)s)")
    made.add_argument("--text", action="store_true", help="type instead of speaking")
    made.add_argument("--replay", action="store_true", help="say again after a gap what was said in it")
    made.add_argument("--bookings", type=Path, metavar="FILE", help="SQLite file; in memory where left out")
    made.add_argument("--commit-after", type=float, default=COMMIT_AFTER_S, metavar="S", help="session seconds")
    made.add_argument(
        "--fault", choices=[each.value for each in Fault], default=Fault.NONE.value, help="of the backend"
    )
    made.add_argument("--unique", action="store_true", help="the database refuses a second booking under one key")
    made.add_argument("--ca", type=Path, metavar="FILE", help="certificate to trust for wss")
    return made


def parse(argv: Sequence[str] | None) -> Options:
    """The options of a command line.

    Raises:
        UsageError: a value that cannot be used, with the option's name.
    """
    given = vars(parser().parse_args(argv))
    return options_of(commit_after_s=given.pop("commit_after"), **given)


def options_of(
    *,
    url: str,
    script: str,
    policy: str,
    status: str | None,
    adapter: str,
    fault: str,
    commit_after_s: float,
    ca: Path | None,
    **others: Any,
) -> Options:
    """Options from what stands on a command line, checked.

    Args:
        url: See ``Options``, and so the others.
        script: JSON, or ``@FILE``.
        policy: A JSON object.
        status: A URL.
        adapter: Its name.
        fault: Its name.
        commit_after_s: Session seconds.
        ca: A file.
        others: Fields of ``Options`` that need no check.

    Raises:
        UsageError: a value that cannot be used, with the option's name.
    """
    if not 0 <= commit_after_s < float("inf"):
        raise UsageError(f"--commit-after is a duration; {commit_after_s} is none.")
    if ca is not None and not ca.is_file():
        raise UsageError(f"--ca: there is no file {ca}.")
    return Options(
        url=checked_url("--url", url, ("ws", "wss", "http", "https")),
        status=None if status is None else checked_url("--status", status, ("http",)),
        script=parse_script(_text(script)),
        policy=Policy.of(_object("--policy", policy)),
        adapter=_one_of("--adapter", adapter, ADAPTERS),
        commit_after_s=commit_after_s,
        fault=Fault(_one_of("--fault", fault, [each.value for each in Fault])),
        ca=ca,
        **others,
    )


def checked_url(option: str, text: str, schemes: Sequence[str]) -> str:
    """A URL with a host and one of these schemes.

    Raises:
        UsageError: it has not.
    """
    try:
        found = urllib.parse.urlsplit(text)
        usable = found.scheme in schemes and bool(found.hostname) and (found.port is None or found.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"{option} is a URL; {text!r} is none.", fix=f"{option} {schemes[0]}://HOST:PORT")
    return text


def endpoint(url: str) -> str:
    """A WebSocket URL with the developer endpoint's path where it has none."""
    found = urllib.parse.urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(found.scheme, found.scheme)
    return urllib.parse.urlunsplit((scheme, found.netloc, found.path.rstrip("/") or paths.developer(), found.query, ""))


def _one_of(option: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise UsageError(f"{option} is one of {', '.join(known)}; {value!r} is none of them.")
    return value


def _text(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--script: {value[1:]} cannot be read: {error}.") from error


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{option} is a JSON object; {text} is none.", fix=f"{option} '{{\"window_s\": 4.0}}'")
    return value
