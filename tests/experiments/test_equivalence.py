"""What counts as the same outcome on both backends, and what does not."""

from typing import Any

import pytest

from lab.experiments.equivalence import as_table, differences
from lab.report.record import Cause, Outcome, Record
from tests.report.cases import both_ways, idle_for_ever

HERE, _ = both_ways()


def there(outcome: Outcome = Outcome.CONFIRMED, **client: Any) -> Record:
    """The same run on the other backend, the client's end observed otherwise."""
    seen = HERE.observation.client.model_copy(update=client)
    observation = HERE.observation.model_copy(update={"client": seen})
    return HERE.model_copy(update={"backend": "docker", "outcome": outcome, "observation": observation})


def died_later(by_s: float, **client: Any) -> Record:
    """Only the give-up comes later."""
    gave_up_s = HERE.observation.client.gave_up_s
    assert gave_up_s is not None
    return there(gave_up_s=gave_up_s + by_s, **client)


def test_a_run_is_equivalent_to_itself() -> None:
    assert differences(HERE, there()) == []


def test_the_same_wait_from_another_first_send_is_the_same() -> None:
    first, times, gave_up_s = (
        HERE.observation.client.first_lost_s,
        HERE.observation.client.copy_times_s,
        HERE.observation.client.gave_up_s,
    )
    assert first is not None
    assert gave_up_s is not None
    shifted = there(first_lost_s=first + 0.4, copy_times_s=tuple(at + 0.4 for at in times), gave_up_s=gave_up_s + 0.4)
    predicted = HERE.prediction.client
    assert predicted.sending is not None
    moved = predicted.model_copy(update={"sending": predicted.sending.counted_from(predicted.sending.origin_s + 0.4)})
    prediction = HERE.prediction.model_copy(update={"client": moved})

    assert differences(HERE, shifted.model_copy(update={"prediction": prediction})) == []


def test_a_give_up_may_be_a_tick_apart_and_no_more() -> None:
    # The longest wait is a second: 250 jiffies at 250 Hz, in buckets of 8, which is 32 ms.
    assert differences(HERE, died_later(0.02, gave_up_within_s=0.0)) == []
    assert "gave up 200 ms apart" in differences(HERE, died_later(0.2, gave_up_within_s=0.0))[0]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (there(outcome=Outcome.REFUTED), "confirmed (None) in namespaces, refuted (None) in containers"),
        (there(cause=Cause.RESET), "client: cause retries2 in namespaces, reset in containers"),
        (there(copies=15), "client: 16 copies in namespaces, 15 in containers"),
        (there(gave_up_s=None), "client: gave up on one backend only"),
    ],
)
def test_what_differs_is_said(other: Record, words: str) -> None:
    assert words in differences(HERE, other)


def test_copies_of_an_end_that_lived_on_hang_on_when_its_path_was_healed() -> None:
    lived: dict[str, Any] = {"cause": Cause.NONE, "gave_up_s": None}

    assert differences(there(**lived), there(copies=4, **lived)) == []
    assert differences(there(**lived), there(copies=4)) != []


@pytest.mark.parametrize(("copies", "said"), [(15, []), (14, ["client: 16 copies in namespaces, 14 in containers"])])
def test_each_run_is_held_to_its_own_prediction_of_copies(copies: int, said: list[str]) -> None:
    predicted = HERE.prediction.client
    assert predicted.sending is not None
    fewer = predicted.model_copy(update={"sending": predicted.sending.model_copy(update={"copies": (15, 15)})})
    prediction = HERE.prediction.model_copy(update={"client": fewer})

    assert differences(HERE, there(copies=copies).model_copy(update={"prediction": prediction})) == said


def test_the_table_has_a_row_for_each_end_that_gave_up_or_one_for_a_run_in_which_none_did() -> None:
    idle, _ = idle_for_ever()
    rows = as_table(
        {"lab/experiments/test_busy.py::test_both": (HERE, there()), "test_idle.py::test_never": (idle,) * 2}
    )

    assert [line.split("|")[2].strip() for line in rows.splitlines() if "busy: both" in line] == ["client", "server"]
    assert sum("idle: never" in line for line in rows.splitlines()) == 1
    assert "2 experiments on both, 0 of them with a difference" in rows
