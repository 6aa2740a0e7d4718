"""A session's events in words, on one clock."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lab.study.reading import LOSSES, Observed, Said, reading_of

CLIENT = {
    "setup_complete": "connection {attempt} is set up, {took_s:.3f} s after its start",
    "said": 'says "{text}"',
    "tool_call": "is asked to call {name}: {args}",
    "committed": "the backend commits: {confirmation_id}",
    "result_sent": "sends the result of {id} on connection {attempt}",
    "model_said": 'hears "{text}"',
    "drop": "ends its connection: {how}",
    "mark": "({name})",
    "lost": "connection {attempt} is lost: silent for {silent_s:.2f} s",
    "refused": "connection {attempt} is refused after {took_s:.3f} s: {code} {reason}",
    "failed": "connection {attempt} failed after {took_s:.3f} s: {error}",
    "resumed": "resumed, {since_lost_s:.3f} s after the loss was noticed",
    "fallback": "goes on in a new session",
    "restored": "tells it what was said and done",
    "update_note": "tells it how a job ended",
    "reissued": "is asked again: {id}, a duplicate of {duplicate_of}",
    "path_back": "connection {attempt} carries traffic again",
    "close_old": "closes connection {attempt}",
    "closed": "connection {attempt} is closed: {code} {reason}",
    "answer": 'is answered "{text}": consistent {consistent}',
    "audio_first": "hears the model begin to speak",
    "lapse": "session time runs {factor:g} times as fast",
    "given_up": "gives up: {reason}",
    "stuck": "got stuck at step {step} ({do}): {why}",
    "bookings": "bookings: {count}",
}
"""Events of the assistant that are told, and how; the others are in its log."""

SERVER = {
    "attach": "connection {connection} has {session}",
    "refused": "refuses connection {connection}: {cause}",
    "detach": "connection {connection} is gone: {how}",
    "closed": "closes connection {connection}: {code}, {because}",
    "heard": 'heard "{text}"',
}
"""The same of the server."""

FEW = 6
"""So many refusals in a row are told one by one; of more the first and the last."""


def narrate(seen: Observed) -> list[str]:
    """Lines with the session's time from its first event, and from the loss where there was one."""
    reading = reading_of(seen)
    told = sorted(
        [*_told("client", seen.assistant, CLIENT), *_told("server", seen.server, SERVER)],
        key=lambda each: float(each[1]["at"]),
    )
    if not told:
        return []
    zero = reading.t(told[0][1])
    loss = next((reading.t(each) for each, _ in reading.episodes()), None)
    lines = []
    for who, event, text in _shortened(told):
        since = reading.t(event)
        from_loss = f"{since - loss:+9.3f}" if loss is not None and since >= loss else " " * 9
        lines.append(f"{since - zero:9.3f} {from_loss}  {who}  {text}")
    return lines


def _told(who: str, events: Iterable[Said], words: Mapping[str, str]) -> Iterator[tuple[str, Said, str]]:
    for event in events:
        if (form := words.get(str(event["event"]))) is not None:
            yield who, event, _worded(form, event)


def _worded(form: str, event: Said) -> str:
    """The words; an event that lacks what they name is shown as it is."""
    if event["event"] == "mark" and event.get("name") in LOSSES:
        return f"--- {event['name']}: nobody is told ---"
    try:
        # An end without a close frame has neither code nor reason.
        return form.format_map(_Plain(event)).rstrip(" :")
    except (KeyError, ValueError, TypeError):
        rest = {name: value for name, value in event.items() if name not in ("at", "t", "event")}
        return f"{event['event']} {rest}"


class _Plain(dict[str, Any]):
    """Fields as they are shown; None is left out."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return "" if value is None else value


def _shortened(told: list[tuple[str, Said, str]]) -> Iterator[tuple[str, Said, str]]:
    """The same with long rows of refusals cut short."""
    refusals: list[tuple[str, Said, str]] = []
    for each in [*told, None]:
        if each is not None and each[1]["event"] == "refused":
            refusals.append(each)
            continue
        if len(refusals) > FEW:
            # Both ends tell each refusal.
            who, event, _ = refusals[2]
            yield from refusals[:2]
            yield who, event, f"... {len(refusals) // 2 - 2} more refused ..."
            yield from refusals[-2:]
        else:
            yield from refusals
        refusals = []
        if each is not None:
            yield each
