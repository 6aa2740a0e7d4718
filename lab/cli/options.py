"""Turns option texts into values, with errors that name the option."""

import difflib
import enum
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from lab.core.duration import parse_duration
from lab.core.errors import UsageError
from lab.core.profile_file import parse_profile
from lab.core.profiles import Profile, profile_named
from lab.core.uplink import Uplink
from lab.run.outside import resolve
from lab.run.spec import Program
from lab.run.trigger import LineTrigger, parse_trigger

Member = TypeVar("Member", bound=enum.Enum)


def command(option: str, text: str) -> tuple[str, ...]:
    """Program and arguments, split as a shell would split them, without any shell."""
    try:
        argv = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} cannot be split into words: {error}.") from error
    if not argv:
        raise UsageError(f"{option} is empty.", fix=f"give {option} a program and its arguments")
    return argv


def program(end: str, text: str | None, image: str | None) -> tuple[str, ...]:
    """The command of one end; none where its image has one of its own.

    Args:
        end: client or server.
        text: What the option of that name said.
        image: The end's image.
    """
    if text is not None:
        return command(f"--{end}", text)
    if image is None:
        raise UsageError(f"There is nothing to run in the {end} node.", fix=f"--{end} CMD, or --{end}-image IMAGE")
    return ()


def far_end(
    server: str | None, image: str | None, port: int | None, uplink: str | None, *, ipv6: bool
) -> tuple[Program | None, Uplink | None, int]:
    """The server's program or the server outside, one of them None, and its port.

    Args:
        server: What ``--server`` said.
        image: ``--server-image``.
        port: ``--port``.
        uplink: ``--uplink``.
        ipv6: Which family an outside server is resolved in.
    """
    if uplink is not None:
        if server is not None or image is not None or port is not None:
            raise UsageError(
                "--uplink says where the server is; --server, --server-image and --port do not go with it."
            )
        found = resolve(uplink, ipv6=ipv6)
        return None, found, found.port
    if port is None:
        raise UsageError("The server's port is missing.", fix="--port N, or --uplink HOST:PORT for a server outside")
    return Program(program("server", server, image)), None, port


def duration(option: str, text: str) -> float:
    """Seconds."""
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", fix=error.fix) from error


def line_trigger(option: str, text: str | None, delay_option: str = "", delay: str | None = None) -> LineTrigger | None:
    """What follows a line of the client's output, or of the server's; None where the option was not given.

    Args:
        option: Its name.
        text: ``REGEX`` or ``server:REGEX``.
        delay_option: The option that says how long after the line.
        delay: What that said.
    """
    if text is None:
        return None
    delay_s = 0.0 if delay is None else duration(delay_option, delay)
    try:
        return parse_trigger(text, delay_s)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", fix=error.fix) from error


def enum_value(option: str, kind: type[Member], text: str) -> Member:
    """The member with this value."""
    try:
        return kind(text)
    except ValueError as error:
        choices = ", ".join(str(member.value) for member in kind)
        meant = difflib.get_close_matches(text.lower(), [str(member.value) for member in kind], 1)
        fix = f"{option} {meant[0] if meant else choices.replace(', ', ' or ')}"
        raise UsageError(f"{option} is one of {choices}; {text!r} is none of them.", fix=fix) from error


def sysctls(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Per node, what ``--sysctl NODE:KEY=VALUE`` asked for."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        node, colon, setting = text.partition(":")
        key, equals, value = setting.partition("=")
        if not (node and colon and key and equals and value):
            raise UsageError(
                f"--sysctl is NODE:KEY=VALUE; {text!r} is not.", fix="--sysctl client:net.ipv4.tcp_retries2=5"
            )
        found.setdefault(node, {})[key.replace("/", ".")] = value
    return found


def find_profile(text: str) -> Profile:
    """A profile by name, or from a TOML file."""
    path = Path(text)
    if path.suffix != ".toml":
        return profile_named(text)
    try:
        with path.open("rb") as file:
            return parse_profile(tomllib.load(file), name=path.stem)
    except OSError as error:
        raise UsageError(f"The profile {text} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The profile {text} is no TOML: {error}.") from error
