"""How a server behaves, as data: every duration, limit and disputed rule of a session server under a name.

The default is the server of the published test series ("study" below: gemini-3.8-live, October 2026). Where public
sources disagree with it, the other reading is a profile of its own. Durations are session seconds; a pair is a range
that the server draws from.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

from lab.core.errors import UsageError

Range = tuple[float, float]
"""Least and greatest of what is drawn evenly."""


class Handles(Enum):
    """When a server names a session."""

    ONCE = "once"
    """Once per connection, right after the setup (study)."""

    MANY = "many"
    """After every turn too, and not resumable while a call is pending (the SDK's own text, Vertex reports)."""


class OldCall(Enum):
    """What becomes of a result for a call that was made on a former connection."""

    ACCEPT = "accept"
    """The model takes it (study: 14 of 14)."""

    IGNORE = "ignore"
    """It is dropped without a word, and the model goes on waiting (reports about 2.5 and 3.1 models)."""


class UnknownResult(Enum):
    """What becomes of a result for a call that was never made."""

    IGNORE = "ignore"
    CLOSE = "close"
    """The connection is closed as for an invalid argument."""


class LimitRefusal(Enum):
    """How a session too many is turned away."""

    CLOSE_1011 = "1011"
    """After its setup, with the RESOURCE_EXHAUSTED text (public threads)."""

    HTTP_429 = "429"
    """At the upgrade already."""


class DeadHandle(Enum):
    """The close code for a handle that names nothing."""

    INTERNAL_1011 = "1011"
    """As for a locked session (study)."""

    INVALID_1007 = "1007"
    """A public report about a session that its server had ended."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The behaviour of one server."""

    name: str
    description: str
    """One line for a list."""

    setup_s: Range = (0.25, 0.30)
    """From a first setup's arrival to its setupComplete. Study: a new session is set up 0.25 to 0.32 s after its
    attempt starts; the 0.399 to 0.606 s of a run's first connection hold name look-up and handshakes as well."""

    resume_setup_s: Range = (0.505, 0.58)
    """The same where a session is resumed. Study: 0.507 to 0.609 s from the attempt's start."""

    refusal_s: Range = (0.54, 0.585)
    """From the setup's arrival to the close that refuses it. Study: median 0.56 to 0.58 s; what is rarer, from 0.46 to
    1.25 s, is not drawn."""

    settle_s: float = 1.0
    """From an idle session's end of connection to the first resume that is accepted. Study: more than 0 and less than
    about 1.5 s; where in between was not measured, and 1.0 is the lab's choice."""

    silence_close_s: float = 480.0
    """From the last message in either direction to the server's own close. Study: 479.0 to 479.4 s after the cut,
    which fell about a second after the last message."""

    handle_valid_s: float = 7200.0
    """How long a session without a connection can be resumed. The lab's assumption; one public report claims about two
    hours for a session that nobody closed."""

    concurrent_limit: int | None = None
    """Sessions at once, those included that lost their client unnoticed; None for no limit. Study: none was met.
    Public reports: 3 per project on the free tier, 1,000 on Vertex."""

    limit_refusal: LimitRefusal = LimitRefusal.CLOSE_1011
    pong_delay_s: float = 0.0
    """Added to every pong. Study: pongs within 10 to 25 ms, which is the path."""

    handles: Handles = Handles.ONCE
    go_away_after_s: float | None = None
    """From setupComplete to goAway; None for never (study: none in 43 sessions)."""

    go_away_time_left_s: float = 50.0
    """From goAway to the close with 1008. Public threads: 50 to 60 s."""

    old_call: OldCall = OldCall.ACCEPT
    unknown_result: UnknownResult = UnknownResult.IGNORE
    dead_handle_code: DeadHandle = DeadHandle.INTERNAL_1011

    call_s: Range = (0.55, 0.70)
    """From the end of the user's turn to the model's tool call. Study: about 4.05 s from the session's start, of
    which the setup, the clip, the wait for its end and its transcript take 3.4 s (see lab/live/model/manner.py)."""

    reply_s: Range = (1.68, 1.78)
    """From the end of the user's turn to the first audio of an answer. Study: R2 asked about 1.15 s after the commit
    (2.0 s after a resume), and had its answer 2.9 to 3.1 s after it."""

    announce_s: Range = (0.595, 0.72)
    """From a tool's response to the first audio of its announcement. Study: 594 to 754 ms."""

    restored_reply_s: Range = (0.76, 1.15)
    """From a restored history to the first audio. Study: 0.76 to 1.20 s."""

    reissue_s: Range = (0.577, 0.858)
    """From a history without a status note to the repeated call. Study: 577 and 858 ms."""

    words_per_s: float = 2.5
    """Speed of the model's speech. Chosen: unhurried English, 150 words a minute."""

    burst: float = 4.0
    """Seconds of speech that the server sends in a second. Study: 39.6 kB in flight 0.2 s after the first chunk of
    48 kB/s audio in base64; the lab's choice fits it."""

    def with_(self, **changes: Any) -> "Profile":
        """The same server, but for some fields; for sweeps.

        Args:
            changes: Field names and values; text is understood as on a command line (``settle_s="0.5"``).

        Raises:
            UsageError: a field that does not exist, or a value that it cannot have.
        """
        return replace(self, **{name: _value(name, given) for name, given in changes.items()})


_RANGES = {"setup_s", "resume_setup_s", "refusal_s", "call_s", "reply_s", "announce_s", "restored_reply_s", "reissue_s"}
_CHOICES: Mapping[str, type[Enum]] = {
    "handles": Handles,
    "old_call": OldCall,
    "unknown_result": UnknownResult,
    "limit_refusal": LimitRefusal,
    "dead_handle_code": DeadHandle,
}
_OPTIONAL = {"concurrent_limit", "go_away_after_s"}
_POSITIVE = {"words_per_s", "burst", "silence_close_s", "concurrent_limit"}

_SPEAKABLE = 0.1, 100.0
"""Words in a second: slower, a sentence does not fit into memory; faster, a syllable has no sample."""


def _value(name: str, given: Any) -> Any:
    known = [field.name for field in fields(Profile)]
    if name not in known:
        raise UsageError(f"A server's profile has no field {name}.", fix=_nearest(name, known))
    try:
        return _parsed(name, given)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} cannot be {given!r}.", fix=f"Give {_form(name)}.") from error


def _parsed(name: str, given: Any) -> Any:
    if name in {"name", "description"}:
        return str(given)
    if name in _CHOICES:
        return given if isinstance(given, _CHOICES[name]) else _CHOICES[name](str(given))
    if name in _OPTIONAL and (given is None or given == "none"):
        return None
    if name in _RANGES:
        return _range(given)
    number = int(given) if name == "concurrent_limit" else float(given)
    if not 0 <= number < float("inf") or (number == 0 and name in _POSITIVE):
        raise ValueError(number)
    if name == "words_per_s" and not _SPEAKABLE[0] <= number <= _SPEAKABLE[1]:
        raise ValueError(number)
    return number


def _range(given: Any) -> Range:
    """Of a pair, of two numbers with a comma, or of one number, which is then both ends."""
    ends = given.split(",") if isinstance(given, str) else given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(ends) <= 2:
        raise ValueError(given)
    low, high = float(ends[0]), float(ends[-1])
    if not 0 <= low <= high < float("inf"):
        raise ValueError(given)
    return low, high


def _form(name: str) -> str:
    if name in _CHOICES:
        return " or ".join(str(choice.value) for choice in _CHOICES[name])
    if name in _RANGES:
        return "one number of seconds, or two with a comma, the lower one first"
    if name == "words_per_s":
        return f"a number from {_SPEAKABLE[0]:g} to {_SPEAKABLE[1]:g}"
    number = "whole number" if name == "concurrent_limit" else "number"
    least = "above 0" if name in _POSITIVE else "that is not negative"
    return f"a {number} {least}" + (", or none" if name in _OPTIONAL else "")


def _nearest(name: str, known: list[str]) -> str:
    return f"Use one of: {', '.join(difflib.get_close_matches(name, known) or known)}."


DEFAULT = Profile("gemini-3.8-live-2026-10", "The server of the published test series, October 2026.")

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            DEFAULT,
            replace(
                DEFAULT,
                name="old-call-ignored",
                description="Drops results for calls of a former connection, and the model goes on waiting.",
                old_call=OldCall.IGNORE,
            ),
            replace(
                DEFAULT,
                name="many-handles",
                description="A new handle after every turn, and not resumable while a call is pending.",
                handles=Handles.MANY,
            ),
            replace(
                DEFAULT,
                name="slow-pongs",
                description="Answers a ping after 8 s only, as one report has it (8 to 30 s).",
                pong_delay_s=8.0,
            ),
            replace(
                DEFAULT,
                name="go-away",
                description="Announces the end of a connection after 540 s, and closes it with 1008 60 s later.",
                # The documentation: a connection lasts about 10 min, goAway comes about 60 s before its end.
                go_away_after_s=540.0,
                go_away_time_left_s=60.0,
            ),
            replace(
                DEFAULT,
                name="dead-handle-1007",
                description="Refuses a handle that names nothing with 1007 in place of 1011.",
                dead_handle_code=DeadHandle.INVALID_1007,
            ),
        )
    }
)
"""Every profile by its name."""


def find(name: str) -> Profile:
    """The profile of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in PROFILES:
        raise UsageError(f"There is no server profile {name}.", fix=_nearest(name, list(PROFILES)))
    return PROFILES[name]
