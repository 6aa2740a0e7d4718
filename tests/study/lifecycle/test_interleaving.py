import pytest

from lab.study.lifecycle.interleaving import Choose, Point, Stuck, every_order, interleave, prefer


class Letters:
    def __init__(self) -> None:
        self.said = ""

    async def say(self, letters: str) -> None:
        for letter in letters:
            self.said += letter
            await Point()

    def run(self, choose: Choose) -> str:
        self.said = ""
        interleave({"small": self.say("ab"), "large": self.say("XY")}, choose)
        return self.said


def test_a_favourite_goes_first_whenever_it_can() -> None:
    assert Letters().run(prefer("small")) == "abXY"
    assert Letters().run(prefer("large")) == "XYab"


def test_every_order_is_each_order_of_the_steps() -> None:
    said = list(every_order(Letters().run))

    assert set(said) == {"abXY", "aXbY", "aXYb", "XabY", "XaYb", "XYab"}


def test_a_program_goes_on_when_its_condition_holds() -> None:
    done: list[str] = []

    async def waits() -> None:
        await Point(lambda: "other" in done)
        done.append("waits")

    async def other() -> None:
        done.append("other")

    interleave({"waits": waits(), "other": other()}, prefer("waits"))

    assert done == ["other", "waits"]


def test_programs_that_wait_for_each_other_are_stuck() -> None:
    async def waits() -> None:
        await Point(lambda: False)

    with pytest.raises(Stuck, match="one and two"):
        interleave({"one": waits(), "two": waits()}, prefer("one"))
