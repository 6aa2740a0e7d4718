"""Durations as people write and read them."""

import math
import re

from lab.core.errors import UsageError

_UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>us|ms|s|min|m|h|d)?", re.ASCII)


def parse_duration(text: str | float) -> float:
    """Seconds of a duration such as ``2s``, ``500ms``, ``15m``, ``1h``; a bare number is seconds.

    Args:
        text: What the user wrote; a number passes through.

    Returns:
        Seconds, finite and not negative.

    Raises:
        UsageError: it is not a duration.
    """
    if isinstance(text, int | float):
        seconds = float(text)
    else:
        match = _WRITTEN.fullmatch(text.strip())
        seconds = float(match["number"]) * _UNITS[match["unit"] or ""] if match else math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise UsageError(f"Expected a duration, got {text!r}.", fix="write 2s, 500ms, 15m, 1h, or seconds as a number.")
    return seconds


def format_duration(seconds: float) -> str:
    """The duration for people, two units at most: ``350 ms``, ``6.86 s``, ``15 m 38 s``, ``2 h 11 m``."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.3g} s" if seconds < 9.995 else f"{seconds:.1f} s"
    for large, small, size, unit in (("d", "h", 86400, 3600), ("h", "m", 3600, 60), ("m", "s", 60, 1)):
        whole = round(seconds / unit) * unit
        if whole >= size:
            rest = whole % size // unit
            return f"{whole // size} {large} {rest} {small}" if rest else f"{whole // size} {large}"
    return f"{seconds:.0f} s"
