import asyncio

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB
from lab.study.lifecycle import elsewhere, servers
from lab.study.lifecycle.stage import Left, Stage
from tests.study.lifecycle.scenes import HURRIED

CRASHES = "import sys; from lab.live.lifecycle.leaver import main; main(); sys.exit('no such thing')"
RAISES = "from lab.live.lifecycle.leaver import main; main(); raise OSError('no room')"
NEVER = "raise SystemExit('not today')"


def leave() -> list[Left]:
    async def scenario() -> list[Left]:
        async with servers.running([HURRIED]) as up:
            found = await elsewhere.exits([Stage(up[0], LAB)])
            assert found[0].life is up[0].book.lives[0]
            return found

    return asyncio.run(scenario())


def test_the_time_of_an_exit_begins_before_the_interpreters_end() -> None:
    (found,) = leave()

    assert found.life.ended_at is not None
    assert found.at < found.life.ended_at


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (CRASHES, "ended with 1: no such thing$"),
        (RAISES, "ended with 1: OSError: no room$"),
        (NEVER, "did not connect: not today$"),
        ("pass", "did not connect: it says nothing$"),
    ],
    ids=["at its end", "at its end, with a traceback", "at once", "at once, without a word"],
)
def test_a_program_that_fails_is_an_invalid_run(program: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its crash would pass for the fastest end of all."""
    monkeypatch.setattr(elsewhere, "LEAVER", ("-c", program))

    with pytest.raises(InvalidRun, match=said):
        leave()
