"""What the model says about both ends, from what their kernels tell just before the cut.

What a foreign program does after the cut is not known before it, so both branches are stated: it sends, or it is idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.core.errors import InvalidRun, Unsupported
from lab.core.flow import FourTuple
from lab.core.giveup import predict
from lab.core.kernel import KNOBS, from_sysctls
from lab.core.prediction import GiveUp, Situation, State
from lab.core.socket import SocketOptions, SocketSample, Timer
from lab.run.flowfinder import sample_of
from lab.run.spec import RunSpec
from lab.testbed.ports import Node

SAME_PACKET_S = 0.05
"""The kernel tells when it last received in whole milliseconds, and one sample is never as quick as another."""

FORECAST_TRIES = 3
"""How often a forecast is made again whose ground moved while it was made."""

HEARD_STATES = frozenset({State.ZERO_WINDOW, State.FIN_WAIT_2})
"""States whose end counts from the last packet received, although the socket is not idle."""


@dataclass(frozen=True, slots=True)
class EndForecast:
    """Both branches of one end, stated before the cut."""

    sending: GiveUp
    idle: GiveUp
    sending_situation: Situation
    """What the branch was predicted from."""

    idle_situation: Situation
    options: SocketOptions | None
    """None where the descriptor could not be read; then the kernel's defaults were assumed."""

    sample: SocketSample | None
    """The socket as it was; None where it does not exist yet."""

    closing: GiveUp | None = None
    """What becomes of the socket if its program closes it after the cut, counted from the first lost send, the FIN
    included; None where the model has no rule for that (a closed window, a thin stream) or the run is about one."""

    closing_situation: Situation | None = None

    @property
    def state(self) -> State:
        """What the socket is doing when its path goes dark."""
        return self.sending_situation.state

    @property
    def held_back(self) -> bool:
        """Whether a closed window kept back what the end had to send."""
        return self.idle_situation.state is State.ZERO_WINDOW

    @property
    def heard_at(self) -> float | None:
        """When this end last received anything, CLOCK_MONOTONIC; None without a sample."""
        if self.sample is None:
            return None
        return heard_at(self.sample)

    def branch(self, *, sends: bool) -> GiveUp:
        """The branch that applies."""
        return self.sending if sends else self.idle

    def situation(self, *, sends: bool) -> Situation:
        """What the branch that applies was predicted from."""
        return self.sending_situation if sends else self.idle_situation

    def anchor(self, sent_at: float | None, heard_at: float | None) -> float | None:
        """The instant that the applying branch counts from, CLOCK_MONOTONIC.

        Args:
            sent_at: First lost send; None for an idle end.
            heard_at: Last packet received.
        """
        if sent_at is None or self.state in HEARD_STATES:
            return heard_at
        return sent_at

    def due(self, sent_at: float | None, heard_at: float | None = None) -> tuple[float, float] | None:
        """When the end is due, CLOCK_MONOTONIC, as far as known now; None for never.

        Args:
            sent_at: First lost send; None for an idle end.
            heard_at: Last packet received; None takes what was known before the cut.
        """
        window = self.branch(sends=sent_at is not None).window_s
        anchor = self.anchor(sent_at, self.heard_at if heard_at is None else heard_at)
        if window is None or anchor is None:
            return None
        return anchor + window[0], anchor + window[1]


def read_settings(node: Node) -> dict[str, str]:
    """Every sysctl that the model depends on; those that this kernel lacks are left out."""
    found = {}
    for knob in KNOBS:
        try:
            found[knob.sysctl] = node.read_sysctl(knob.sysctl)
        except Unsupported:
            continue
    return found


def forecast(
    state: State,
    sample: SocketSample | None,
    options: SocketOptions | None,
    sysctls: Mapping[str, str],
    *,
    hz: int,
    writes_on: bool,
    peer_alive: bool = False,
) -> EndForecast:
    """Both branches for one end.

    Args:
        state: What the socket will be doing when its path goes dark.
        sample: The socket just before the cut, None before it exists.
        options: Its options, None where they could not be read.
        sysctls: The node's settings, as read.
        hz: Timer ticks per second.
        writes_on: Whether the program keeps on writing after its first lost segment, as far as is known.
        peer_alive: Zero window: the probes are answered.

    Raises:
        InvalidRun: the socket is not in the state that the run is about.
    """
    settings = from_sysctls(sysctls, hz=hz)
    situation = Situation(
        state=state,
        settings=settings,
        options=options or SocketOptions(),
        rto_s=_plain_rto(sample),
        srtt_s=0.0 if sample is None else sample.srtt_s,
        writes_on=writes_on,
        peer_alive=peer_alive,
    )
    if state is State.ZERO_WINDOW:
        if sample is None:
            raise InvalidRun("A zero window was to be cut, but the socket had vanished before the cut.")
        situation = replace(situation, backoff=max(sample.backoff - sample.retransmits, 0))
    idle = replace(
        situation, state=State.ESTABLISHED, busy=False, writes_on=False, keepalive_due_s=_keepalive_due(sample)
    )
    if state is State.FIN_WAIT_2:
        idle = situation
    if state is State.ESTABLISHED and sample is not None and sample.timer is Timer.PROBE:
        # It has something to send that the peer's closed window keeps back: until that opens it sends probes.
        held_back = max(sample.backoff - sample.retransmits, 0)
        idle = replace(situation, state=State.ZERO_WINDOW, writes_on=False, backoff=held_back)
    closing = None
    if idle.state is state is State.ESTABLISHED and not settings.thin_linear_timeouts:
        # A close is a write: its FIN moves the probe of what is in flight.
        closing = replace(situation, state=State.FIN_WAIT_1, writes_on=True)
    return EndForecast(
        sending=predict(situation),
        idle=predict(idle),
        sending_situation=situation,
        idle_situation=idle,
        options=options,
        sample=sample,
        closing=None if closing is None else predict(closing),
        closing_situation=closing,
    )


def heard_at(sample: SocketSample) -> float:
    """When the socket last received anything, CLOCK_MONOTONIC."""
    return sample.at - min(sample.last_ack_received_s, sample.last_data_received_s)


def _keepalive_due(sample: SocketSample | None) -> float | None:
    if sample is None or sample.timer is not Timer.KEEPALIVE or sample.expires_s is None:
        return None
    return sample.at + sample.expires_s - heard_at(sample)


def outdated(old: SocketSample | None, new: SocketSample | None) -> bool:
    """Whether keepalive or window probes were answered between two samples, so that the older one misleads."""
    if old is None or new is None or not {old.timer, new.timer} & {Timer.KEEPALIVE, Timer.PROBE}:
        return False
    before, after = (old.timer, old.backoff), (new.timer, new.backoff)
    return before != after or heard_at(new) - heard_at(old) > SAME_PACKET_S


def _plain_rto(sample: SocketSample | None) -> float | None:
    # A backed-off timeout says nothing about the next loss: the model takes what the RTT gives instead.
    if sample is None or sample.backoff or not sample.rto_s:
        return None
    return sample.rto_s


def forecast_end(
    node: Node, end: FourTuple, state: State, spec: RunSpec, settings: Mapping[str, str], *, hz: int
) -> EndForecast:
    """Both branches of one end, from its socket as it is now.

    Args:
        node: Where the socket is.
        end: The flow with the node's own address first.
        state: What the socket will be doing when its path goes dark.
        spec: The run's.
        settings: The node's sysctls, as read.
        hz: Timer ticks per second.

    Raises:
        InvalidRun: the kernel does not list the socket.
    """
    sample = sample_at_cut(node, end, spec)
    for _ in range(FORECAST_TRIES):
        options = spec.declared_options if node.name == "client" else None
        if sample is not None:
            options = node.socket_options(end.client.port, end.server.port)
        made = forecast(state, sample, options, settings, hz=hz, writes_on=spec.writes_on)
        # A prediction of a quarter of an hour takes its time, in which a keepalive probe may be answered.
        before, sample = sample, sample_at_cut(node, end, spec)
        if not outdated(before, sample):
            break
    return made


def sample_at_cut(node: Node, end: FourTuple, spec: RunSpec) -> SocketSample | None:
    """The end's socket as it is now; None where the run is about one that does not exist yet.

    Args:
        node: Where it is.
        end: The flow with the node's own address first.
        spec: The run's.

    Raises:
        InvalidRun: the kernel does not list it.
    """
    sample = sample_of(node.sockets(), end)
    if sample is None and spec.connect_from is None:
        raise InvalidRun(f"The {node.name}'s kernel does not list {end}, the flow that was about to be cut.")
    return sample
