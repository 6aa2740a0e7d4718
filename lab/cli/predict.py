"""``lab predict``: the kernel's give-up model on its own."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lab.core.prediction import GiveUp, Situation


_KEEPALIVE_MAX_S = 32767
"""MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL (``include/net/tcp.h``)."""

_USER_TIMEOUT_MAX_S = (2**31 - 1) / 1000
"""TCP_USER_TIMEOUT is an int of milliseconds."""


_ROWS = 24
"""Copies in the table; of more, the middle is left out."""


def predict(
    state: Annotated[
        str,
        typer.Option(
            help="established, zero-window, syn-sent, syn-received, fin-wait-1, last-ack or fin-wait-2.",
            metavar="STATE",
        ),
    ] = "established",
    busy: Annotated[bool, typer.Option("--busy/--idle", help="Established: data is sent, or nothing is.")] = True,
    retries2: Annotated[int | None, typer.Option(min=0, max=255, help="tcp_retries2.", metavar="N")] = None,
    rto: Annotated[
        str | None, typer.Option(help="Retransmission timeout before the loss (ss -ti: rto).", metavar="TIME")
    ] = None,
    rto_max: Annotated[str | None, typer.Option(help="tcp_rto_max_ms, as a duration.", metavar="TIME")] = None,
    user_timeout: Annotated[str | None, typer.Option(help="TCP_USER_TIMEOUT.", metavar="TIME")] = None,
    keepalive: Annotated[
        str | None,
        typer.Option(help="Keepalive on, as 10/5/3; an empty part is the profile's: // is all of it.", metavar="I/I/C"),
    ] = None,
    syn_retries: Annotated[
        int | None, typer.Option(min=0, max=127, help="tcp_syn_retries; syn-received: tcp_synack_retries.", metavar="N")
    ] = None,
    syn_linear: Annotated[
        int | None, typer.Option(min=0, max=255, help="tcp_syn_linear_timeouts.", metavar="N")
    ] = None,
    orphan_retries: Annotated[int | None, typer.Option(min=0, max=255, help="tcp_orphan_retries.", metavar="N")] = None,
    fin_timeout: Annotated[str | None, typer.Option(help="tcp_fin_timeout, as a duration.", metavar="TIME")] = None,
    profile: Annotated[
        str, typer.Option(help="Kernel settings to start from: a profile's name, or FILE.toml.", metavar="NAME")
    ] = "linux",
    rtt: Annotated[str, typer.Option(help="Smoothed round-trip time.", metavar="TIME")] = "0",
    segments: Annotated[
        int, typer.Option(min=1, help="Segments sent into the hole at once.", metavar="N", show_default=True)
    ] = 1,
    backoff: Annotated[
        int, typer.Option(min=0, max=255, help="zero-window: doublings when the last packet came.", metavar="N")
    ] = 0,
    peer_alive: Annotated[bool, typer.Option("--peer-alive", help="zero-window: the peer answers the probes.")] = False,
    hz: Annotated[int, typer.Option(min=24, max=10000, help="The kernel's CONFIG_HZ.", metavar="HZ")] = 250,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Say when a kernel would give up on a path gone silent, and every copy before.

    Times count from the first lost send, or from the last packet received where nothing is sent (idle, zero-window,
    fin-wait-2). Durations are 2s, 500ms, 15m; a bare number is seconds.
    """
    from dataclasses import replace

    from lab.cli.options import duration, enum_value, find_profile
    from lab.cli.output import print_json, print_out
    from lab.core import giveup
    from lab.core.kernel import LINUX_DEFAULTS
    from lab.core.prediction import Situation, State
    from lab.core.profiles import real_world

    settings = find_profile(profile).settings(on=replace(LINUX_DEFAULTS, hz=hz))
    changes: dict[str, Any] = {
        "retries2": retries2,
        "rto_max_ms": None if rto_max is None else _rto_max_ms(rto_max),
        "syn_linear_timeouts": syn_linear,
        "orphan_retries": orphan_retries,
        "fin_timeout_s": None if fin_timeout is None else round(duration("--fin-timeout", fin_timeout)),
        "synack_retries" if state == "syn-received" else "syn_retries": syn_retries,
    }
    situation = Situation(
        state=enum_value("--state", State, state),
        busy=busy,
        settings=replace(settings, **{name: value for name, value in changes.items() if value is not None}),
        options=_options(user_timeout, keepalive),
        rto_s=None if rto is None else _positive("--rto", rto),
        srtt_s=duration("--rtt", rtt),
        segments=segments,
        backoff=backoff,
        peer_alive=peer_alive,
    )
    prediction = giveup.predict(situation)
    defaults = real_world(situation)
    if json:
        print_json(as_json(situation, prediction, defaults))
    else:
        for part in for_people(prediction, defaults):
            print_out(part)


def as_json(situation: "Situation", prediction: "GiveUp", defaults: "GiveUp") -> dict[str, Any]:
    """The object that ``--json`` prints; the contract's keys first, seconds, never is null."""
    return {
        "bound_s": _rounded(prediction.bound_s),
        "give_up_s": _rounded(prediction.give_up_s),
        "window_s": _window(prediction.window_s),
        "cause": prediction.cause.value,
        "copy_times_s": [_rounded(copy.time_s) for copy in prediction.copy_times],
        "rule": prediction.rule,
        "state": situation.state.value,
        "copies": list(prediction.copies),
        "copy_windows_s": [_window(copy.window_s) for copy in prediction.copy_times],
        "copy_classes": [copy.kind.value for copy in prediction.copy_times],
        "candidates": [{"copies": c.copies, "window_s": _window(c.window_s)} for c in prediction.candidates],
        "sends_reset": prediction.sends_reset,
        "linux_defaults_give_up_s": _rounded(defaults.give_up_s),
    }


def for_people(prediction: "GiveUp", defaults: "GiveUp") -> list[Any]:
    """The same as text and a table, for a terminal of 80 columns."""
    from rich.table import Table

    from lab.core.duration import format_duration

    if prediction.window_s is None or prediction.give_up_s is None:
        return [f"Never: {prediction.rule}."]
    low, high = prediction.window_s
    lines = [
        f"Gives up after {format_duration(prediction.give_up_s)}: {prediction.cause.value}.",
        f"Window:  {low:.3f} to {high:.3f} s",
        f"Rule:    {prediction.rule}",
    ]
    if prediction.bound_s is not None:
        lines.append(f"Bound:   {prediction.bound_s:.3f} s")
    if len(prediction.candidates) > 1:
        ends = "; or ".join(f"{c.window_s[0]:.3f} to {c.window_s[1]:.3f} s" for c in prediction.candidates)
        lines.append(f"Either:  {ends}")
    if defaults != prediction and defaults.give_up_s is not None:
        lines.append(f"With Linux's defaults: {format_duration(defaults.give_up_s)}")
    if not prediction.copy_times:
        return ["\n".join(lines)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("copy", "right"), ("at", "right"), ("earliest", "right"), ("latest", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # literals of rich's own type
    table.add_column("class")
    numbered = list(enumerate(prediction.copy_times, 1))
    left_out = max(0, len(numbered) - _ROWS)
    for number, copy in numbered[: _ROWS - 2] + numbered[_ROWS - 2 + left_out :]:
        low, high = copy.window_s
        table.add_row(str(number), f"{copy.time_s:.3f} s", f"{low:.3f}", f"{high:.3f}", copy.kind.value)
        if left_out and number == _ROWS - 2:
            table.add_row("...", "", "", "", f"{left_out} more")
    return ["\n".join(lines) + "\n", table]


def _options(user_timeout: str | None, keepalive: str | None) -> Any:
    from lab.core.errors import UsageError
    from lab.core.socket import SocketOptions

    user_timeout_s = None if user_timeout is None else _user_timeout_s(user_timeout)
    if keepalive is None:
        return SocketOptions(user_timeout_s=user_timeout_s)
    parts = keepalive.split("/")
    if len(parts) != 3 or not ((parts[2].isdecimal() and 1 <= int(parts[2]) <= 127) or not parts[2]):
        raise UsageError(
            f"Expected idle/interval/count with a count of 1 to 127, got {keepalive!r}.",
            fix="write 10/5/3, or // for the profile's.",
        )
    return SocketOptions(
        user_timeout_s=user_timeout_s,
        keepalive=True,
        keepalive_idle_s=_keepalive_s(parts[0]) if parts[0] else None,
        keepalive_interval_s=_keepalive_s(parts[1]) if parts[1] else None,
        keepalive_count=int(parts[2]) if parts[2] else None,
    )


def _positive(option: str, text: str) -> float:
    from lab.cli.options import duration
    from lab.core.errors import UsageError

    seconds = duration(option, text)
    if not seconds:
        raise UsageError(f"{option} takes a duration above zero, got {text!r}.")
    return seconds


def _keepalive_s(text: str) -> float:
    from lab.core.errors import UsageError

    seconds = _positive("--keepalive", text)
    if not 1 <= seconds <= _KEEPALIVE_MAX_S:
        raise UsageError(f"--keepalive {text}: the kernel takes 1 to {_KEEPALIVE_MAX_S} s (tcp(7), TCP_KEEPIDLE).")
    return seconds


def _user_timeout_s(text: str) -> float:
    from lab.cli.options import duration
    from lab.core.errors import UsageError

    seconds = duration("--user-timeout", text)
    if seconds > _USER_TIMEOUT_MAX_S:
        raise UsageError(f"--user-timeout {text}: the kernel takes at most 24.8 days, an int of milliseconds.")
    return seconds


def _rto_max_ms(text: str) -> int:
    from lab.cli.options import duration
    from lab.core.errors import UsageError

    milliseconds = round(duration("--rto-max", text) * 1000)
    if not 1000 <= milliseconds <= 120_000:
        raise UsageError(f"--rto-max {text}: the kernel takes 1 s to 120 s (tcp_rto_max_ms).")
    return milliseconds


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _window(window: tuple[float, float] | None) -> list[float] | None:
    return None if window is None else [round(edge, 6) for edge in window]
