"""What a new session is told: the last turns, and from the backend, not from the model, how things stand.

A model believes its transcript. If that ends with a call under way, it makes the call again, with a new id. So the
history ends with a note that says of every side effect whether it was done; a model that reads it has nothing left
to do but to tell the user.
"""

from collections.abc import Iterable, Sequence

from lab.live.protocol.messages import ClientContent, Content, Json, Part
from lab.live.recovery.ledger import Job, Progress
from lab.live.recovery.transcript import Turn

TURNS = 6
"""How many of the latest turns are told (study)."""

CUT_OFF = "[cut off here: the connection was lost]"

INTRO = "[System note, not said by the user] The connection was lost, and the talk goes on in a new session."

NOTHING = "No action was under way or was finished lately."

OUTRO = (
    "These lines come from the booking system and are right, whatever was said above. Do not repeat any of these "
    "actions. Tell the user in one short sentence how things stand."
)

UPDATE_INTRO = "[System note, not said by the user] An action that was still being processed has come to its end."

UPDATE_OUTRO = "Do not repeat it. Tell the user in one short sentence."

_WORDS = {Progress.PENDING: "still being processed", Progress.FAILED: "failed, nothing was changed"}


def history(turns: Sequence[Turn], jobs: Iterable[Job], *, note: bool = True) -> ClientContent:
    """The history for a new session, to be answered at once.

    Args:
        turns: What was said, oldest first; the last ``TURNS`` of them are told.
        jobs: ``Ledger.effects``.
        note: False: without the status note, as the labelled wrong example.
    """
    told = [_content(turn.role, f"{turn.text} {CUT_OFF}" if turn.cut_off else turn.text) for turn in turns[-TURNS:]]
    if note:
        told.append(_content("user", "\n".join([INTRO, *([status_line(job) for job in jobs] or [NOTHING]), OUTRO])))
    return ClientContent(tuple(told), turn_complete=True)


def update_note(jobs: Iterable[Job]) -> ClientContent:
    """The note for jobs that have ended since a status note called them pending, to be answered at once."""
    lines = [UPDATE_INTRO, *(status_line(job) for job in jobs), UPDATE_OUTRO]
    return ClientContent((_content("user", "\n".join(lines)),), turn_complete=True)


def status_line(job: Job) -> str:
    """How one job stands: ``- book_slot (slot: tomorrow 3pm): booked, confirmation_id BK-1001``."""
    return f"- {job.name} ({_listed(job.args)}): {_standing(job)}"


def _standing(job: Job) -> str:
    said = {key: value for key, value in job.response.items() if key not in job.args and key != "status"}
    words = _WORDS.get(job.progress) or str(job.response.get("status", "done"))
    return ", ".join([words, *(f"{key} {value}" for key, value in said.items())])


def _listed(args: Json) -> str:
    return ", ".join(f"{key}: {value}" for key, value in args.items())


def _content(role: str, text: str) -> Content:
    return Content(role, (Part(text=text),))
