"""From a client that was just started to the moment of the cut: its flow is found, has talked, and is still open.

The cut comes after a time, or after a line; what is done in between is the runner's.
"""

from lab.core.errors import UsageError
from lab.core.flow import FourTuple
from lab.core.prediction import State
from lab.run.agenda import Agenda, Observe
from lab.run.arrange import Stage
from lab.run.flowfinder import (
    TALK_TIMEOUT_S,
    Roll,
    choose,
    find_flow,
    four_tuple,
    knock,
    refuse_closed,
    refuse_exit,
    sample_of,
    wait_for_talk,
    wait_for_window_probe,
)
from lab.run.patience import STEP_S, Patience
from lab.testbed.ports import Process


class Connecting:
    """Finds the flow that the user means.

    Args:
        stage: Everything but the client.
        client: Its program, just started.
        patience: Waits.
        observe: Told of each flow that was taken.
    """

    def __init__(self, stage: Stage, client: Process, patience: Patience, observe: Observe) -> None:
        self._stage = stage
        self._spec = stage.spec
        self._uplink = stage.spec.uplink
        self._node = stage.testbed.client
        self._client = client
        self._patience = patience
        self._observe = observe
        self._roll = Roll(self._node, stage.spec.port, None if self._uplink is None else self._uplink.address)

    def first_flow(self) -> FourTuple:
        """The flow that matches first, once it has talked.

        Raises:
            UsageError: there is none, or several and no choice; or it never talked.
        """
        return self._take(self._find())

    def await_time(self, agenda: Agenda) -> None:
        """Wait for the moment of the cut, and do what the run does before it."""
        cut_at = self._patience.now() + self._spec.cut_after_s
        agenda.act_before(cut_at)
        self._look_on(cut_at)

    def flow_at_cut(self, flow: FourTuple) -> FourTuple:
        """The flow that the user means at the moment of the cut, which has come.

        Args:
            flow: The one that was found first.

        Raises:
            UsageError: several match and there is no choice, or it is open no more.
        """
        spec = self._spec
        flow = self._choose_again(flow)
        if self._stage.server is not None:
            refuse_exit(self._stage.server, "could be cut off")
        if spec.client_state is State.ZERO_WINDOW:
            wait_for_window_probe(self._node, flow, self._patience)
        if not spec.closes:
            refuse_exit(self._client, "could be cut off")
            # What the roll has just seen: whoever follows a line does not look twice.
            refuse_closed(sample_of(self._roll.seen, flow), self._client)
        return flow

    def _find(self) -> FourTuple:
        spec = self._spec
        try:
            return find_flow(self._roll, self._client, spec.port, spec.flow, self._patience, called=spec.far_name)
        except UsageError as error:
            if self._stage.server is not None:
                # Then the client could not but fail.
                refuse_exit(self._stage.server, "was connected to")
            if self._uplink is None or self._roll.look():
                raise
            accepts, answer = knock(self._node, self._uplink, self._patience)
            fix = error.fix if accepts else "give the address and port on which the server accepts connections"
            raise UsageError(f"{error.message} {answer}", fix=fix) from error

    def _take(self, flow: FourTuple) -> FourTuple:
        self._observe("client", "connected", flow=str(flow))
        if self._spec.talks and not wait_for_talk(self._node, self._client, flow, self._patience):
            raise UsageError(
                f"Data in both directions was expected before the cut; after {TALK_TIMEOUT_S:g} s {flow} had none.",
                fix="let the programs exchange something first",
            )
        return flow

    def _look_on(self, until: float) -> None:
        """Wait, and where age decides between flows, see each when it appears."""
        if self._spec.flow is None:
            self._patience.pause_until(until)
            return
        while (left_s := until - self._patience.now()) > 0:
            self._roll.look()
            self._patience.pause(min(STEP_S, left_s))

    def _choose_again(self, flow: FourTuple) -> FourTuple:
        """The flow that the user means of those that are there at the cut; the newest may be another one by now.

        Raises:
            UsageError: several match, and no choice was made.
        """
        open_now = self._roll.look()
        if self._spec.flow is None and len(open_now) > 1:
            choose(open_now, None)
        if self._spec.flow != "newest" or not open_now or four_tuple(open_now[-1]) == flow:
            return flow
        return self._take(four_tuple(open_now[-1]))
