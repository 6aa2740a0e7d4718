"""Durations and windows in words, for people."""

NEVER = "never"


def seconds(value: float) -> str:
    """A duration to about four digits: "0.35 ms", "0.207 s", "13.43 s", "938.5 s"."""
    if 0 < abs(value) < 0.01:
        return f"{value * 1000:.2f} ms"
    return f"{value:.{_digits(value)}f} s"


def brief(value: float) -> str:
    """A chosen duration, without digits that nobody chose: "2 s", "0.5 s"."""
    return f"{value:.4g} s"


def window(value: tuple[float, float] | None) -> str:
    """A predicted window: "13.11 to 13.94 s", or "never"."""
    if value is None:
        return NEVER
    low, high = value
    digits = _digits(high)
    return f"{low:.{digits}f} to {high:.{digits}f} s"


def count(value: tuple[int, int] | None) -> str:
    """A predicted count: "7", "7 to 8", or "?" where the model does not say."""
    if value is None:
        return "?"
    low, high = value
    return str(low) if low == high else f"{low} to {high}"


def copies(value: int | tuple[int, int]) -> str:
    """A number of copies in words: "no copies", "1 copy", "7 to 8 copies"."""
    low, high = (value, value) if isinstance(value, int) else value
    if high == 0:
        return "no copies"
    return "1 copy" if low == high == 1 else f"{count((low, high))} copies"


def closing(held_s: float | None, closed_s: float) -> str:
    """When something was closed, as closely as that is known: "at 1.434 s", "between 1.259 and 1.511 s"."""
    return f"at {seconds(closed_s)}" if held_s is None else f"between {held_s:.3f} and {seconds(closed_s)}"


def long(value: float) -> str:
    """A long duration as a person says it: "15 min 38 s", "2 h 11 min"."""
    whole = round(value)
    if whole < 120:
        return seconds(value)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


def _digits(value: float) -> int:
    size = abs(value)
    return 3 if size < 10 else 2 if size < 100 else 1
