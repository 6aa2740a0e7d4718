"""A session whose path is not cut: the client ends its connection, a proxy freezes it, or the client's address changes.

It has the testbed, the captures and the logs of a run of the lab, and no flow to be watched: what its quantities need
is in the programs' events.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.core.errors import InvalidRun
from lab.core.profiles import profile_named
from lab.report.folder import RunFolder
from lab.run.arrange import apply_settings, start
from lab.run.flowfinder import tail
from lab.run.noticing import event_of
from lab.run.patience import Patience
from lab.run.runner import Opener
from lab.run.settings import at_creation
from lab.run.spec import RunSpec
from lab.study.commands import PORT, Casting
from lab.study.scenario import Mark
from lab.testbed.ports import Line, Process, Testbed, TestbedSpec

LISTEN_S = 20.0
"""How long a program may take until it listens; a second, unless the machine is busy."""

OBEYED_S = 5.0
"""How long the proxy may take to say that it has done what it was told."""

LOOK_S = 0.25
"""Between two looks at whether every program still runs; events are heard at once."""

AGAIN = {Mark.FREEZE: "frozen", Mark.UNFREEZE: "unfrozen"}
"""What the proxy says when it has obeyed."""


class TooSlow(InvalidRun):
    """Something took longer than it may, which is what a busy machine does."""


@dataclass(slots=True)
class Performance:
    """A session as it was performed."""

    programs: dict[str, Process] = field(default_factory=dict)
    """client, server and, where there is one, proxy."""

    marks: list[tuple[str, float, float]] = field(default_factory=list)
    """Name, when the assistant said so, and when it was done."""


@dataclass(slots=True)
class Hearing:
    """Takes note of the assistant's marks and of its end, at the instant that they are read."""

    wake: threading.Event = field(default_factory=threading.Event)
    marks: list[tuple[str, float]] = field(default_factory=list)
    done: bool = False

    def hear(self, line: Line) -> None:
        """Take one line."""
        event = event_of(line)
        if event is None or event.get("event") not in ("mark", "done"):
            return
        if event["event"] == "done":
            self.done = True
        else:
            self.marks.append((str(event.get("name")), line.at))
        self.wake.set()


def play(
    casting: Casting,
    open_testbed: Opener,
    out: Path,
    *,
    gate: AbstractContextManager[object],
    patience: Patience,
    played: Performance,
) -> None:
    """Bring everything up, obey the assistant until its script is over, and take everything down.

    Args:
        casting: The programs.
        open_testbed: Brings up the backend.
        out: For captures and logs; new or empty.
        gate: Held while testbed and programs start.
        patience: Waits.
        played: Told of the programs and of what was done, whatever becomes of the session.

    Raises:
        TooSlow: the script, or something in it, took too long.
        InvalidRun: a program ended, or a mark could not be obeyed.
        LabError: nothing can be performed here.
    """
    folder = RunFolder.create(casting.scenario.id, started=datetime.now(UTC).astimezone(), out=out)
    try:
        with contextlib.ExitStack() as testbeds:
            with gate:
                testbed = testbeds.enter_context(open_testbed(_testbed_spec(casting)))
                _set_the_stage(casting, testbed, folder.path, played, patience)
            _follow(casting, testbed, played, patience)
            testbed.router.stop_capture()
    finally:
        for name, process in played.programs.items():
            _keep(process, folder.file(f"{name}.log"))


def _testbed_spec(casting: Casting) -> TestbedSpec:
    return TestbedSpec(sysctls=at_creation(_as_run(casting)), preload=casting.modules.preload)


def _as_run(casting: Casting) -> RunSpec:
    """What of a run's settings there is here too."""
    kernel = casting.variant.kernel
    return RunSpec(
        server=casting.server(),
        client=casting.client(),
        port=PORT,
        profile=profile_named(kernel.profile),
        sysctls=kernel.sysctls,
    )


def _set_the_stage(casting: Casting, testbed: Testbed, folder: Path, played: Performance, patience: Patience) -> None:
    """Everything but the assistant."""
    spec = _as_run(casting)
    for node in (testbed.client, testbed.server):
        apply_settings(node, spec.profile, spec.sysctls.get(node.name, {}))
    testbed.router.start_capture(folder)
    server = played.programs["server"] = start(casting.server(), testbed.server)
    _await_listening(server, patience)
    if casting.frozen:
        proxy = played.programs["proxy"] = start(casting.proxy(), testbed.router)
        _await_listening(proxy, patience)


def _await_listening(process: Process, patience: Patience) -> None:
    """Return once it says that it listens.

    Raises:
        TooSlow: it does not.
        InvalidRun: it has ended.
    """

    def look() -> bool | None:
        if any((event_of(line) or {}).get("event") == "listening" for line in process.lines):
            return True
        _refuse_end(process)
        return None

    if patience.until(look, LISTEN_S) is None:
        raise TooSlow(f"{' '.join(process.argv)} does not listen after {LISTEN_S:g} s. {tail(process)}")


def _follow(casting: Casting, testbed: Testbed, played: Performance, patience: Patience) -> None:
    """Start the assistant, and do what it asks for until it is done."""
    hearing = Hearing()
    client = played.programs["client"] = start(casting.client(), testbed.client)
    client.listen(hearing.hear)
    until = patience.now() + casting.variant.limit_s
    acts = _acts(testbed, played.programs, patience)
    while True:
        hearing.wake.clear()
        for name, at in hearing.marks[len(played.marks) :]:
            played.marks.append((name, at, _obey(name, acts)))
        for process in played.programs.values():
            if not hearing.done:
                _refuse_end(process)
        if hearing.done:
            return
        if patience.now() >= until:
            raise TooSlow(f"The script was not over after {casting.variant.limit_s:g} s. {tail(client)}")
        patience.pause(LOOK_S, hearing.wake)


def _acts(testbed: Testbed, programs: Mapping[str, Process], patience: Patience) -> dict[str, Callable[[], float]]:
    """What can be done here, by the name of the mark; each tells when it was done, CLOCK_MONOTONIC."""
    acts: dict[str, Callable[[], float]] = {Mark.MOVE_ADDRESS.value: partial(_move, testbed, patience)}
    if "proxy" in programs:
        for mark, answer in AGAIN.items():
            acts[mark.value] = partial(_tell, programs["proxy"], mark.value, answer, patience)
    return acts


def _obey(name: str, acts: Mapping[str, Callable[[], float]]) -> float:
    if name not in acts:
        raise InvalidRun(f"The assistant asked for {name!r}; here there is {', '.join(acts)}.")
    return acts[name]()


def _move(testbed: Testbed, patience: Patience) -> float:
    testbed.move_client()
    return patience.now()


def _tell(proxy: Process, word: str, answer: str, patience: Patience) -> float:
    since = patience.now()
    try:
        proxy.write(word + "\n")
        line = proxy.wait_for_line(f'"event": ?"{answer}"', OBEYED_S, since=since)
    except TimeoutError as error:
        raise TooSlow(f"The proxy was told to {word}, and did not: {error}") from error
    except OSError as error:
        raise InvalidRun(f"The proxy could not be told to {word}: {error}") from error
    if not (event_of(line) or {}).get("connections"):
        raise InvalidRun(f"The proxy had no connection to {word}.")
    return line.at


def _refuse_end(process: Process) -> None:
    """A program that ends before the script does has spoilt the session."""
    if process.returncode is not None:
        raise InvalidRun(f"{' '.join(process.argv[:3])} ended with status {process.returncode}. {tail(process)}")


def _keep(process: Process, path: Path) -> None:
    """Write down what a program printed, as a run of the lab does."""
    lines = "".join(f"{line.at:.6f} {line.stream} {line.text}\n" for line in process.lines)
    with contextlib.suppress(OSError):
        path.write_text(lines, encoding="utf-8")
