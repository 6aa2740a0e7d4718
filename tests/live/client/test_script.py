import json

import pytest

from lab.core.errors import UsageError
from lab.live.client import script, steps
from lab.live.client.script import parse_script, write_script

ONE_OF_EACH = (
    steps.Connect(),
    steps.Connect(handle="h", transparent=True, may_fail=True),
    steps.Say("book"),
    steps.Type("hi", turn=True),
    steps.Await("tool_call", plus_s=1.5, timeout_s=5.0),
    steps.Mark("cut"),
    steps.Drop("close"),
    steps.Resume(at=(), every_s=10.0, until_s=900.0, close_old_first=True),
    steps.Resume(at=(0.0, 1.0, 2.5)),
    steps.Fresh(),
    steps.ReuseOld(),
    steps.CloseOld(1001),
    steps.Watch(8.0),
    steps.HoldResult(),
    steps.SendResult(),
    steps.Ask(),
    steps.LapseTime(30.0),
    steps.Recover(),
    steps.End(),
)


def test_every_kind_of_step_is_among_the_examples() -> None:
    assert {type(step) for step in ONE_OF_EACH} == set(script.KINDS.values())


def test_a_script_reads_back_as_it_was_written() -> None:
    assert parse_script(write_script(ONE_OF_EACH)).steps == ONE_OF_EACH


def test_durations_lose_their_unit_and_defaults_their_place_in_json() -> None:
    assert json.loads(write_script([steps.Watch(8.0), steps.Await("lost", plus_s=0.5)])) == [
        {"do": "watch", "for": 8.0},
        {"do": "await", "event": "lost", "plus": 0.5},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "The script is no JSON"),
        ("{}", "A script is a list of steps; this is an object."),
        ("[1]", "Step 1 is a number; a step is an object with a do."),
        ('[{"do":"end"},{"do":"jump"}]', "Step 2 does 'jump', which is no step."),
        ("[{}]", "Step 1 does None, which is no step."),
        ('[{"do":["end"]}]', "Step 1 does ['end'], which is no step."),
        ('[{"do":"say"}]', "Step 1 (say) needs the field clip."),
        ('[{"do":"say","clip":3}]', "Step 1 (say), field clip is a text; 3 is none."),
        ('[{"do":"say","clip":"book","loud":true}]', "Step 1 (say) has no field loud."),
        ('[{"do":"watch","for":-1}]', "Step 1 (watch), field for is a number, not negative; -1 is none."),
        ('[{"do":"watch","for":true}]', "Step 1 (watch), field for is a number, not negative; True is none."),
        ('[{"do":"watch","for":Infinity}]', "Step 1 (watch), field for is a number, not negative; inf is none."),
        ('[{"do":"drop","how":"cut"}]', "Step 1 (drop), field how is one of abort, close; 'cut' is none of them."),
        ('[{"do":"drop","how":["abort"]}]', "Step 1 (drop), field how is one of abort, close"),
        ('[{"do":"close-old","code":true}]', "Step 1 (close-old), field code is a whole number; True is none."),
        ('[{"do":"resume","at":1}]', "Step 1 (resume), field at is a list of numbers; a number is none."),
        ('[{"do":"resume","at":[1,0]}]', "Step 1 (resume), field at: the offsets ascend"),
        ('[{"do":"resume","every":1}]', "Step 1 (resume) with every needs a positive every, and until"),
        ('[{"do":"resume","every":0,"until":9}]', "Step 1 (resume) with every needs a positive every, and until"),
        ('[{"do":"lapse","factor":0}]', "Step 1 (lapse), field factor: time runs by a positive factor."),
    ],
)
def test_what_cannot_be_read_is_said_with_its_step_and_field(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_script(text)

    assert raised.value.message.startswith(message)
