"""Which rules a session follows. Everything else is one code for all of them.

Source of each rule: the description in firebase-ios-sdk pull request 17045, of which the repair there mends the
release alone and names the others as open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Variant:
    """A session's rules."""

    name: str
    description: str
    """One line for a list."""

    closes_on_release: bool
    """The last reference to the session gone, its connection is closed and its stream ends. Else service, tasks and
    socket hold each other, and only the server's limit ends them."""

    first_end_counts: bool
    """A socket keeps the first end that it records. Else the receive that fails at a close of our own closes a second
    time, with the socket's code."""

    tells_who_closed: bool
    """An end is ours or the server's by who began it. Else by its code: 1001 is the user's, whoever sent it."""

    reads_text_frames: bool
    """Else a server's text frames are dropped."""

    names_setup_errors: bool
    """A setup that is refused is an error of the setup. Else an unexpected closure, or nothing at all for 1001."""

    answers_sends: bool
    """A send is done when the message is on its way, or raises. Else it is queued, and an error is a line in a log."""

    close_code: int
    """Of a close of our own. As published 1001, which is what the other end of the rule above reads as the user's."""


PUBLISHED = Variant(
    "as published",
    "Released without close it stays connected; ends are told by their codes.",
    closes_on_release=False,
    first_end_counts=False,
    tells_who_closed=False,
    reads_text_frames=False,
    names_setup_errors=False,
    answers_sends=False,
    close_code=1001,
)

REPAIRED = replace(
    PUBLISHED,
    name="with the repair",
    description="Closes on release, as published; the rest as before.",
    closes_on_release=True,
)

LAB = Variant(
    "the lab's",
    "Closes on release, keeps the first end, and tells who closed.",
    closes_on_release=True,
    first_end_counts=True,
    tells_who_closed=True,
    reads_text_frames=True,
    names_setup_errors=True,
    answers_sends=True,
    close_code=1000,
)

VARIANTS: Mapping[str, Variant] = MappingProxyType({variant.name: variant for variant in (PUBLISHED, REPAIRED, LAB)})
"""Every variant by its name."""
