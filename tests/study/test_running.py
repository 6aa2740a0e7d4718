"""Sessions performed in real testbeds by stand-ins: what the network does to them, and what makes one INVALID.

All of them start together at the first test, since each mostly waits.
"""

import concurrent.futures
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.report.record import Outcome
from lab.study.commands import Modules
from lab.study.performing import judged
from lab.study.running import perform
from lab.study.scenario import BackendPlan, Group, KernelPlan, Loss, Mark, Quantity, Scenario, ServerPlan, Step, Variant
from lab.study.session_record import SessionRecord
from lab.study.steps import CLOSE_OLD, END, drop, mark, resume, say, wait, watch
from lab.testbed.netns import open_testbed

STANDINS = Modules("tests.study.standins.server", "tests.study.standins.client")
TALK = say("book")
LOST = wait("lost")
DIE: Step = {"do": "die", "status": 7}
FOLLOWS_S = 0.25
"""From a mark to what it asks for: 10 ms, where nobody else wants a processor."""

BUSY = "the machine was too busy"
TRIES = 3


def scenario(loss: Loss, *steps: Step, limit_s: float = 25.0, **changes: Any) -> Scenario:
    plan = KernelPlan("fast")
    return Scenario(
        "X1", "a test", 1, Group.NEW, loss, (Variant(steps, limit_s, plan, longest_s=limit_s - 1),), (), **changes
    )


SESSIONS: dict[str, Scenario] = {
    "abort": scenario(Loss.ABORT, TALK, drop("abort"), watch(0.3), END),
    "close": scenario(Loss.CLOSE, TALK, drop("close"), watch(0.3), END),
    "none": scenario(
        Loss.NONE,
        TALK,
        END,
        server=ServerPlan(settings={"setup_s": "0.1"}),
        policy={"note": False},
        replay_speech=True,
        backend=BackendPlan(unique=True),
    ),
    "freeze": scenario(
        Loss.FREEZE, TALK, mark(Mark.FREEZE), LOST, resume(0, 1), mark(Mark.UNFREEZE), watch(0.3), CLOSE_OLD, END
    ),
    "freeze twice": scenario(Loss.FREEZE, TALK, mark(Mark.FREEZE), LOST, resume(0), mark(Mark.FREEZE), LOST, END),
    "freeze nothing": scenario(Loss.FREEZE, TALK, mark(Mark.FREEZE), mark(Mark.FREEZE), watch(20), END),
    "address": scenario(Loss.ADDRESS, TALK, mark(Mark.MOVE_ADDRESS), LOST, resume(0), watch(0.5), END),
    "packet loss": scenario(Loss.PACKET_LOSS, TALK, mark(Mark.CUT), LOST, resume(0, 1), watch(2.0), END),
    "path back": scenario(
        Loss.PACKET_LOSS, TALK, mark(Mark.CUT), LOST, resume(0), mark(Mark.HEAL), watch(2.5), CLOSE_OLD, watch(0.5), END
    ),
    "assistant dies": scenario(Loss.NONE, TALK, DIE),
    "assistant dies in the dark": scenario(Loss.PACKET_LOSS, TALK, mark(Mark.CUT), LOST, DIE),
    "assistant dies before the cut": scenario(Loss.PACKET_LOSS, TALK, DIE, mark(Mark.CUT), END),
    "server dies": scenario(Loss.NONE, TALK, say("die"), watch(20), END),
    "too slow": scenario(Loss.NONE, TALK, watch(60), END, limit_s=3.0),
    "too slow in the dark": scenario(Loss.PACKET_LOSS, TALK, mark(Mark.CUT), watch(60), END, limit_s=3.0),
}


class Stage:
    """All sessions, each done again where a busy machine spoilt it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pool = concurrent.futures.ThreadPoolExecutor(7)
        self._running = {name: self._pool.submit(self._perform, name) for name in SESSIONS}

    def _perform(self, name: str) -> SessionRecord:
        for number in range(TRIES):
            out = self._folder / f"{name}-{number}".replace(" ", "-")
            performed = perform(SESSIONS[name], 3, open_testbed=open_testbed, out=out, modules=STANDINS)
            if not performed.disturbed and not any(BUSY in each for each in judged(performed).invalid):
                break
        return performed

    def __getitem__(self, name: str) -> SessionRecord:
        return self._running[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("sessions"))
    yield made
    made.close()


def named(events: Sequence[Any], name: str) -> list[Any]:
    return [each for each in events if each["event"] == name]


@pytest.mark.parametrize(("name", "how"), [("abort", "rst"), ("close", "fin")])
def test_what_the_client_itself_does_the_server_sees(stage: Stage, name: str, how: str) -> None:
    performed = stage[name]

    assert performed.invalid is None
    assert [each["how"] for each in named(performed.server, "detach")] == [how]
    assert (performed.record, performed.marks) == (None, ())
    assert judged(performed).valid, judged(performed).invalid


def test_a_folder_has_the_captures_and_what_the_programs_printed(stage: Stage) -> None:
    plain, cut, frozen = stage["abort"].folder, stage["packet loss"].folder, stage["freeze"].folder

    common = {"client.log", "server.log", "left.pcapng", "right.pcapng"}
    assert common <= {path.name for path in plain.iterdir()}
    assert common | {"record.json", "timeline.jsonl"} <= {path.name for path in cut.iterdir()}
    assert (frozen / "proxy.log").read_text().count('"frozen"') == 1


def test_programs_are_told_what_the_scenario_says(stage: Stage) -> None:
    performed = stage["none"]
    [client], [server] = named(performed.assistant, "given"), named(performed.server, "given")

    assert performed.invalid is None
    assert {"--replay", "--unique", '{"note": false}', "http://server:8766"} <= set(client["rest"])
    assert client["rest"][client["rest"].index("--bookings") + 1] == str(performed.folder / "bookings.sqlite")
    assert {"--set", "setup_s=0.1", "--seed", "3", "--status-port", "8766"} <= set(server["rest"])


def test_a_frozen_connection_is_lost_and_new_ones_pass_until_it_thaws(stage: Stage) -> None:
    performed = stage["freeze"]

    assert performed.invalid is None
    assert [name for name, _, _ in performed.marks] == ["freeze", "unfreeze"]
    assert all(0 <= done - said < FOLLOWS_S for _, said, done in performed.marks)
    assert named(performed.proxy, "frozen")[0]["connections"] == [1]
    assert len(named(performed.assistant, "setup_complete")) == 2
    thawed_at = named(performed.proxy, "unfrozen")[0]["at"]
    [end] = [each for each in named(performed.server, "detach") if each["connection"] == 1]
    assert end["at"] > thawed_at
    assert judged(performed).valid, judged(performed).invalid


def test_what_replaced_a_frozen_connection_can_be_frozen_as_well(stage: Stage) -> None:
    performed = stage["freeze twice"]

    assert performed.invalid is None
    assert [each["connections"] for each in named(performed.proxy, "frozen")] == [[1], [2]]
    assert len(named(performed.assistant, "lost")) == 2


def test_an_address_that_is_gone_is_a_silent_loss(stage: Stage) -> None:
    performed = stage["address"]

    assert performed.invalid is None
    assert [name for name, _, _ in performed.marks] == ["move-address"]
    before, after = (each["local"][0] for each in named(performed.assistant, "connected"))
    assert before != after
    assert [each for each in named(performed.server, "detach") if each["connection"] == 1] == []
    assert judged(performed).valid, judged(performed).invalid


def test_a_session_with_packet_loss_is_a_run_of_the_lab_whose_cut_follows_the_mark(stage: Stage) -> None:
    performed = stage["packet loss"]
    record = performed.record

    assert record is not None
    assert performed.invalid is None
    assert (performed.refuted, record.outcome) == (None, Outcome.CONFIRMED)
    [(name, said, done)] = performed.marks
    assert (name, done) == ("cut", performed.cut_at)
    assert 0 < done - said < FOLLOWS_S
    assert record.observation.client.noticed_by is not None
    wire = performed.observed.wire
    assert wire is not None
    [mark_event] = named(performed.observed.assistant, "mark")
    assert mark_event["done_at"] == performed.cut_at, "the loss counts from the cut, not from the wish for it"
    assert mark_event["at"] <= said
    assert judged(performed).valid, judged(performed).invalid


def test_where_the_path_comes_back_the_heal_follows_its_mark_and_the_close_arrives(stage: Stage) -> None:
    performed = stage["path back"]

    assert performed.invalid is None
    assert performed.record is not None
    assert performed.record.outcome is Outcome.CONFIRMED, performed.record.reason
    assert [name for name, _, _ in performed.marks] == ["cut", "heal"]
    assert all(0 < done - said < FOLLOWS_S for _, said, done in performed.marks)
    assert [each["how"] for each in named(performed.server, "detach") if each["connection"] == 1] == ["fin"]
    assert judged(performed).values[Quantity.BOOKINGS] == (1,)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("assistant dies", "ended with status 7"),
        ("assistant dies in the dark", "the assistant's script ended with status 7"),
        ("assistant dies before the cut", "status 7"),
        ("server dies", "ended with status 3"),
        ("too slow", "The script was not over after 3 s"),
        ("too slow in the dark", "was not over in time"),
        ("freeze nothing", "The proxy had no connection to freeze"),
    ],
)
def test_a_session_that_does_not_come_to_its_end_is_invalid_with_what_was_said_last(
    stage: Stage, name: str, said: str
) -> None:
    performed = stage[name]

    assert performed.invalid is not None
    assert said in performed.invalid
    assert "Its last lines" in performed.invalid or name == "freeze nothing"
    assert performed.assistant
    assert not judged(performed).valid


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (scenario(Loss.ABORT, mark(Mark.CUT), END), "X1 asks 1 times for cut; abort has that not"),
        (scenario(Loss.PACKET_LOSS, mark(Mark.CUT), mark(Mark.CUT), END), "asks 2 times for cut"),
        (scenario(Loss.PACKET_LOSS, mark(Mark.CUT), mark(Mark.FREEZE), END), "asks 1 times for freeze"),
        (scenario(Loss.FREEZE, mark(Mark.MOVE_ADDRESS), END), "asks 1 times for move-address"),
        (scenario(Loss.PACKET_LOSS, END), "asks for no cut"),
    ],
)
def test_a_script_that_asks_for_what_there_is_not_is_refused_before_anything_starts(
    wrong: Scenario, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        perform(wrong, open_testbed=open_testbed, out=tmp_path / "out", modules=STANDINS)
    assert list(tmp_path.iterdir()) == []


def test_every_scenario_of_the_study_asks_for_what_there_is() -> None:
    from lab.study.running import _refuse_marks
    from lab.study.scenarios import SCENARIOS

    for each in SCENARIOS.values():
        for variant in (*each.lapsed, *each.real):
            _refuse_marks(replace(each), variant.steps)
