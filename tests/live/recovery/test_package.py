"""The package's own example runs as it stands."""

import textwrap
from typing import Any

from lab.live import recovery as package
from lab.live.protocol.messages import ClientContent, FunctionCall, ToolResponse
from lab.live.recovery.liveness import By, Loss

RESULT = {"status": "booked", "confirmation_id": "BK-1001"}


def example() -> str:
    """The lines from the example's first to its last."""
    assert package.__doc__ is not None
    lines = package.__doc__.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    recovery, ledger, transcript ="))
    last = max(number for number, line in enumerate(lines) if line.startswith("    obey("))
    return textwrap.dedent("\n".join(lines[first : last + 1]))


def test_the_example_recovers_a_lost_session() -> None:
    done: list[tuple[Any, ...]] = []
    names: dict[str, Any] = {name: getattr(package, name) for name in package.__all__}
    names |= {"Command": package.Command, "ToolResponse": ToolResponse, "clock": lambda: 100.0}
    names |= {"loss": Loss(2.0, By.SILENCE)}
    for name in ("dial", "close", "send", "log", "tell_the_user"):
        names[name] = lambda *given, name=name: done.append((name, *given))

    exec(example(), names)
    assert [each[:2] for each in done if each[0] != "log"] == [("close", 0), ("dial", 1)]
    done.clear()
    names["ledger"].called(FunctionCall("c1", "book_slot", {"slot": "tomorrow 3pm"}), now=99.0)
    names["ledger"].finished(1, RESULT, now=100.0)
    names["transcript"].user("Book me the 3pm slot tomorrow, please.")
    names["obey"](names["recovery"].ready(1, now=104.0))
    (verb, attempt, content) = next(each for each in done if each[0] == "send")
    assert (verb, attempt) == ("send", 1)
    assert isinstance(content, ClientContent)
    assert "BK-1001" in content.turns[-1].text


def test_the_example_gives_up_aloud() -> None:
    told: list[str] = []
    names: dict[str, Any] = {name: getattr(package, name) for name in package.__all__}
    names |= {"Command": package.Command, "ToolResponse": ToolResponse, "clock": lambda: 100.0}
    names |= {"loss": Loss(2.0, By.SILENCE), "tell_the_user": told.append}
    for name in ("dial", "close", "send", "log"):
        names[name] = lambda *_given: None

    exec(example(), names)
    names["obey"](names["recovery"].wake(now=130.0))
    assert told == ["no connection in 30 s"]
