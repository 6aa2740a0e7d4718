"""Profiles of the user's own, from a parsed TOML document."""

from collections.abc import Mapping
from typing import Any

from lab.core.errors import UsageError
from lab.core.kernel import LINUX_DEFAULTS
from lab.core.profiles import IPV4, KNOWN_SYSCTLS, LINUX, Pin, Profile, nearest, over


def parse_profile(document: Mapping[str, Any], *, name: str) -> Profile:
    """The profile that a TOML document describes, on top of Linux's defaults.

    The document has ``description`` (optional) and a table ``sysctls``, whose keys are sysctl names, with or without
    ``net.ipv4.``. A value is a number, a word, a list of words in order of preference, or a table with ``value`` and
    ``source``.

    Args:
        document: As ``tomllib`` gives it.
        name: What the profile is called where the document does not say.

    Raises:
        UsageError: an unknown key, named with the nearest known one, or a value of the wrong kind.
    """
    for key in document:
        if key not in ("name", "description", "sysctls"):
            raise UsageError(
                f"Profile {name}: unknown key {key!r}.", fix=nearest(key, ("name", "description", "sysctls"))
            )
    table = document.get("sysctls", {})
    if not isinstance(table, Mapping):
        raise UsageError(
            f"Profile {name}: expected a table [sysctls], got {table!r}.", fix="write [sysctls] above the keys."
        )
    pins = tuple(_pin(name, key, value) for key, value in _flat(table))
    if duplicates := len(pins) - len({pin.sysctl for pin in pins}):
        raise UsageError(f"Profile {name}: {duplicates} sysctl(s) set twice, with and without net.ipv4.")
    return Profile(str(document.get("name", name)), str(document.get("description", "")), over(LINUX.pins, *pins), {})


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Keys with dots: TOML reads ``net.ipv4.tcp_sack = 1`` as three nested tables."""
    flat: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, Mapping) and "value" not in value:
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat


def _pin(profile: str, key: str, value: Any) -> Pin:
    sysctl = key if "." in key else IPV4 + key
    if sysctl not in KNOWN_SYSCTLS:
        raise UsageError(f"Profile {profile}: unknown sysctl {key!r}.", fix=nearest(sysctl, KNOWN_SYSCTLS))
    source = f"profile {profile}"
    if isinstance(value, Mapping):
        source, value = str(value.get("source", source)), value["value"]
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(item, bool | int | str) for item in values):
        raise UsageError(
            f"Profile {profile}: expected a number, a word or a list of words for {key!r}, got {value!r}.",
            fix=f"write {key} = 1, for instance.",
        )
    pin = Pin(sysctl, tuple(str(int(item)) if isinstance(item, bool) else str(item) for item in values), source)
    LINUX_DEFAULTS.with_sysctls({sysctl: pin.values[0]})
    return pin
