"""What a run does to its programs and to the path, each at its time: lines, signals, a new connection, the heal."""

from collections.abc import Callable, Mapping
from functools import partial

from lab.core.errors import InvalidRun
from lab.core.fault import Fault
from lab.run.cue import Cue
from lab.run.patience import Patience
from lab.run.settle import nudge
from lab.run.spec import Action, RunSpec
from lab.testbed.ports import CutReceipt, Process, Testbed

Observe = Callable[..., None]
"""Puts one fact on the timeline: source, kind, instant (CLOCK_MONOTONIC, None is now), and its details by name."""


class Agenda:
    """Whatever is still to be done.

    Args:
        spec: The run's.
        testbed: Where.
        programs: By node, as they are started.
        patience: Waits, and tells the time.
        observe: Told what was done.
    """

    def __init__(
        self, spec: RunSpec, testbed: Testbed, programs: Mapping[str, Process], patience: Patience, observe: Observe
    ) -> None:
        self._spec = spec
        self._testbed = testbed
        self._programs = programs
        self._patience = patience
        self._observe = observe
        self._planned: list[tuple[float, Callable[[], None]]] = []
        self._heal_cue: tuple[Cue, Fault] | None = None
        self._cut_at = 0.0
        self.healed: CutReceipt | None = None
        self.reconnect: Process | None = None
        """The client of the new connection, once it was tried."""

    def act_before(self, cut_at: float) -> None:
        """Do what comes before the cut, that long before this instant."""
        for action in sorted((a for a in self._spec.actions if a.at_s < 0), key=lambda a: a.at_s):
            self._patience.pause_until(cut_at + action.at_s)
            self._act(action)

    def begin(self, fault: Fault, cut_at: float, heal_cue: Cue | None = None) -> None:
        """Count everything that comes after the cut from this instant.

        Args:
            fault: In force.
            cut_at: CLOCK_MONOTONIC.
            heal_cue: What the heal follows, where it is no time.
        """
        spec = self._spec
        self._cut_at = cut_at
        self._heal_cue = None if heal_cue is None else (heal_cue, fault)
        planned: list[tuple[float, Callable[[], None]]] = [
            (cut_at + action.at_s, partial(self._act, action)) for action in spec.actions if action.at_s >= 0
        ]
        if spec.reconnect_at_s is not None:
            planned.append((cut_at + spec.reconnect_at_s, self._try_new_connection))
        if spec.heal_after_s is not None:
            planned.append((cut_at + spec.heal_after_s, partial(self._heal, fault)))
        self._planned = sorted(planned, key=lambda pair: pair[0])

    def do_what_is_due(self) -> None:
        """Do all whose time has come, earliest first.

        Raises:
            UsageError: the line that the heal was to follow cannot come any more.
        """
        self._plan_heal()
        while self._planned and self._planned[0][0] <= self._patience.now():
            self._planned.pop(0)[1]()

    @property
    def waits(self) -> bool:
        """Whether the line that the heal follows has not come yet."""
        return self._heal_cue is not None

    def refuse_silence(self) -> None:
        """Say so where the watch is over and the heal's line never came.

        Raises:
            UsageError: it never came.
        """
        if self._heal_cue is not None:
            self._heal_cue[0].refuse("before the watch ended")

    def next_at(self) -> float | None:
        """When there is something to do again, CLOCK_MONOTONIC; None: nothing is left."""
        return self._planned[0][0] if self._planned else None

    def _plan_heal(self) -> None:
        """Once the line has come, the heal has its time like everything else."""
        if self._heal_cue is None:
            return
        cue, fault = self._heal_cue
        cue.require(self._patience.now(), self._cut_at)
        if cue.line is not None and cue.due_at is not None:
            self._heal_cue = None
            self._observe(cue.trigger.node, "line", cue.line.at, text=cue.line.text, then="heal")
            self._planned = sorted([*self._planned, (cue.due_at, partial(self._heal, fault))], key=lambda pair: pair[0])

    def _act(self, action: Action) -> None:
        program = self._programs[action.node]
        if action.signal is not None:
            program.send_signal(action.signal)
            self._observe(action.node, "action", signal=action.signal)
            return
        try:
            program.write(action.text + "\n")
        except OSError as error:
            ended = program.returncode
            state = "reads nothing" if ended is None else f"has ended with status {ended}"
            raise InvalidRun(f"The {action.node} was to be told {action.text!r}; its program {state}.") from error
        self._observe(action.node, "action", text=action.text)

    def _heal(self, fault: Fault) -> None:
        nudge(self._testbed, fault, outside=self._spec.uplink is not None)
        self.healed = self._testbed.router.heal(fault)
        self._observe("router", "heal", self.healed.done_at)

    def _try_new_connection(self) -> None:
        self._observe("client", "reconnect")
        self.reconnect = self._testbed.client.spawn_module(
            "lab.programs.client", (self._spec.far_name, str(self._spec.port), "--connect-only")
        )
