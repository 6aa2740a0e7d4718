"""``lab live assistant``: the reference client, by a script or at the keyboard."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lab.live.client.events import Events
    from lab.live.client.options import Options
    from lab.live.clock import Clock

UNTRUE = 1
"""Exit code where an answer contradicted the bookings, or the script got stuck: refuted."""

WORDS_AT = 10
"""The column at which an event's words begin."""


def assistant(
    url: Annotated[
        str, typer.Option(help="The session server; for google-genai its base URL.")
    ] = "ws://127.0.0.1:8765",
    script: Annotated[
        str | None, typer.Option(metavar="JSON", help="Steps, or @FILE; without it you talk at the keyboard.")
    ] = None,
    policy: Annotated[str, typer.Option(metavar="JSON", help="Recovery options that differ from the study's.")] = "{}",
    adapter: Annotated[str, typer.Option(help="wire, or google-genai for an unmodified client of that name.")] = "wire",
    status: Annotated[str | None, typer.Option(help="The server's status page, which is told of lapses.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Type instead of speaking.")] = False,
    replay: Annotated[bool, typer.Option("--replay", help="Say again after a gap what was said in it.")] = False,
    bookings: Annotated[Path | None, typer.Option(metavar="FILE", help="SQLite file; in memory without it.")] = None,
    commit_after: Annotated[str, typer.Option(metavar="T", help="From the call to the booking.")] = "4s",
    fault: Annotated[str, typer.Option(help="Of the backend: none, fail, never, full-disk.")] = "none",
    unique: Annotated[bool, typer.Option("--unique", help="The database refuses a second booking per slot.")] = False,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate to trust for wss.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per event on standard output.")] = False,
) -> None:
    """Book a slot by voice, and survive the loss of the connection.

    Without --script: /say book speaks, all else is typed, /drop and /close lose the connection, /quit ends. Losses are
    recovered from by the policy. Exit code 1: an answer contradicted the bookings, or the script got stuck.
    """
    import asyncio

    from lab.cli.options import duration
    from lab.live.client.events import Events
    from lab.live.client.options import options_of
    from lab.live.clock import Clock
    from lab.programs.report import say

    given = options_of(
        url=url, status=status, script=script or "[]", policy=policy, adapter=adapter, text=text, replay=replay,
        bookings=bookings, commit_after_s=duration("--commit-after", commit_after), fault=fault, unique=unique, ca=ca,
    )  # fmt: skip
    clock = Clock()
    events = Events(clock, say if as_json else _Narrator())
    usable = asyncio.run(_run(given, events, clock, scripted=script is not None))
    if not usable or any(each.name == "answer" and not each.fields["consistent"] for each in events.log):
        raise SystemExit(UNTRUE)


async def _run(options: "Options", events: "Events", clock: "Clock", *, scripted: bool) -> bool:
    from lab.live.client.program import perform, talk

    return await (perform if scripted else talk)(options, events=events, clock=clock)


class _Narrator:
    """Tells events in words, in seconds from the first one."""

    def __init__(self) -> None:
        self._zero: float | None = None

    def __call__(self, event: str, *, at: float, t: float, **fields: Any) -> None:  # noqa: ARG002 - session time it is
        from lab.cli.output import hanging, print_out

        self._zero = t if self._zero is None else self._zero
        if (words := in_words(event, fields)) is not None:
            print_out(hanging(f"{t - self._zero:8.3f}  {words}", WORDS_AT))


def in_words(event: str, fields: Mapping[str, Any]) -> str | None:
    """An event for people, None where they are not told.

    Args:
        event: Its name.
        fields: What belongs to it.
    """
    from lab.study.narrative import CLIENT

    if event == "help":
        return str(fields["text"])
    form = CLIENT.get(event)
    if form is None:
        return None
    try:
        # An end without a close frame has neither code nor reason.
        return form.format_map({name: "" if value is None else value for name, value in fields.items()}).rstrip(" :")
    except (KeyError, ValueError):
        return f"{event} {dict(fields)}"  # A field that the words format is not known, such as the time of no attempt.
