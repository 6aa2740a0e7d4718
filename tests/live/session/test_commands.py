"""Notes are for a log of JSON lines."""

import json

from lab.live.session.commands import Audit
from tests.live.session.playbook import play


def test_every_note_of_a_busy_server_is_json_and_says_when_it_matters_why() -> None:
    stage = play(
        """
        0     open 1
        0     setup 1
        0.25  > 1 setupComplete session-1
        0.25  > 1 handle h1
        1     open 2
        1     setup 2 h1
        1.47  > 2 close 1011
        1.5   gone 2 close frame
        2     heard session-1 book
        3     > 1 call c1
        4     result 1 c7
        5     gone 1 FIN
        9     wake
        """
    )

    assert json.loads(json.dumps([[note.event, dict(note.fields)] for note in stage.notes]))
    assert [note.event for note in stage.notes] == [
        *(Audit.OPENED, Audit.ATTACH, Audit.READY, Audit.OPENED, Audit.REFUSED, Audit.CLOSED, Audit.DETACH),
        *(Audit.HEARD, Audit.UNKNOWN_RESULT, Audit.DETACH, Audit.STATE),
    ]
    (refused,) = stage.told(Audit.REFUSED)
    assert (refused["code"], refused["cause"], refused["handle"], refused["after_s"]) == (1011, "attached", "h1", 0.47)
    assert [fields["how"] for fields in stage.told(Audit.DETACH)] == ["close frame", "FIN"]
