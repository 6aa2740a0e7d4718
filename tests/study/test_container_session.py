"""A spoken session in containers, by the lab's own programs from its image: lost in the hole, refused, freed, resumed.

What the study's B3 is at length: while its old connection is attached a session cannot be resumed, in the dark or with
the path back; once the server has that connection's close it can.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.report.record import Outcome
from lab.run.backend import Images, open_docker
from lab.study.running import perform
from lab.study.scenario import BackendPlan, Group, KernelPlan, Loss, Mark, Scenario, Variant
from lab.study.session_record import SessionRecord
from lab.study.steps import CLOSE_OLD, END, booking, mark, resume, wait
from tests.engines import require_engine, require_lab_image

DARK = (mark(Mark.CUT), wait("lost"), resume(0), mark(Mark.HEAL))
FREED = (CLOSE_OLD, wait("closed"), resume(0))
SPOKEN = Scenario(
    "X1",
    "B3 in ten seconds",
    1,
    Group.NEW,
    Loss.PACKET_LOSS,
    (Variant((*booking(0), *DARK, *FREED, END), limit_s=60, kernel=KernelPlan("fast")),),
    (),
    backend=BackendPlan(commit_after_s=1.0),
)
TRIES = 3


def played(folder: Path) -> SessionRecord:
    """The session, done again where a busy machine spoilt it."""
    with require_engine() as engine:
        require_lab_image(engine)
    for number in range(TRIES):
        out = folder / str(number)
        performed = perform(SPOKEN, open_testbed=open_docker(Images()), out=out, backend="docker")
        if not performed.disturbed:
            break
    return performed


def named(events: tuple[Mapping[str, Any], ...], name: str, **fields: object) -> list[Mapping[str, Any]]:
    return [each for each in events if each["event"] == name and fields.items() <= each.items()]


def test_a_spoken_session_is_lost_in_the_hole_and_free_once_the_server_has_its_close(tmp_path: Path) -> None:
    performed = played(tmp_path)
    assert performed.invalid is None
    assert performed.record is not None
    assert performed.record.outcome is Outcome.CONFIRMED, performed.record.reason
    assert [name for name, _, _ in performed.marks] == ["cut", "heal"]
    files = {path.name for path in performed.folder.iterdir()}
    assert {"left.pcapng", "right.pcapng", "client.log", "server.log"} <= files

    [heard], [bookings] = named(performed.assistant, "heard"), named(performed.assistant, "bookings")
    assert "book" in heard["text"]
    assert (bookings["count"], [row["slot"] for row in bookings["rows"]]) == (1, ["tomorrow 3pm"])

    [refused], [resumed] = named(performed.assistant, "refused"), named(performed.assistant, "resumed")
    [end] = named(performed.server, "detach", connection=1)
    assert (refused["attempt"], refused["code"], end["how"]) == (2, 1011, "close frame")
    assert refused["at"] < end["at"] < resumed["at"]
