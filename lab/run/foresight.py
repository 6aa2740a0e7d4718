"""What is said of both ends before the cut: at the cut, or while the line is waited for that the cut follows.

A cut that follows a line does not wait for a forecast, which takes some ten milliseconds of processor time, and several
times that on a busy machine. The forecast is made and stated before the line comes; at the line both sockets are only
looked at. After the watch it is made anew from that look: everything that it comes from was there before the cut.
"""

from collections.abc import Iterator, Mapping

from lab.core.errors import InvalidRun
from lab.core.flow import FourTuple
from lab.core.prediction import State
from lab.core.socket import SocketSample
from lab.run.forecast import EndForecast, forecast, forecast_end, sample_at_cut
from lab.run.spec import RunSpec, inside
from lab.testbed.ports import Node, Testbed

Forecasts = dict[str, EndForecast]
"""By end: client and server, or the client alone."""

Look = Mapping[str, SocketSample | None]
"""By end, its socket just before the cut."""


class Foresight:
    """Says what both ends will do.

    Args:
        spec: The run's.
        testbed: Where.
        settings: Per node, the sysctls that decide, as read.
        hz: Timer ticks per second.
    """

    def __init__(self, spec: RunSpec, testbed: Testbed, settings: Mapping[str, Mapping[str, str]], hz: int) -> None:
        self._spec = spec
        self._testbed = testbed
        self._settings = settings
        self._hz = hz

    def forecast(self, flow: FourTuple) -> Forecasts:
        """Both branches of both ends, as their kernels are now.

        Raises:
            InvalidRun: a kernel does not list the flow.
        """
        return {
            node.name: forecast_end(node, end, self._state(node), self._spec, self._settings[node.name], hz=self._hz)
            for node, end in self._ends(flow)
        }

    def look(self, flow: FourTuple) -> Look:
        """Both sockets as they are now.

        Raises:
            InvalidRun: a kernel does not list the flow.
        """
        return {node.name: sample_at_cut(node, end, self._spec) for node, end in self._ends(flow)}

    def anew(self, stated: Forecasts, look: Look) -> Forecasts:
        """The same forecasts from a later look, with the options that were read for the earlier one."""
        return {
            node.name: forecast(
                self._state(node),
                look[node.name],
                stated[node.name].options,
                self._settings[node.name],
                hz=self._hz,
                writes_on=self._spec.writes_on,
            )
            for node in inside(self._testbed, self._spec)
        }

    def require_options(self, flow: FourTuple, stated: Forecasts) -> None:
        """See that the options which a forecast was made with are still those of the sockets.

        Raises:
            InvalidRun: a program has set others since.
        """
        for node, end in self._ends(flow):
            now = node.socket_options(end.client.port, end.server.port)
            if now is not None and now != stated[node.name].options:
                raise InvalidRun(f"The {node.name}'s program set socket options between its forecast and the cut.")

    def _ends(self, flow: FourTuple) -> Iterator[tuple[Node, FourTuple]]:
        """Each end's node, and the flow with its own address first."""
        for node in inside(self._testbed, self._spec):
            yield node, flow if node.name == "client" else FourTuple(client=flow.server, server=flow.client)

    def _state(self, node: Node) -> State:
        return self._spec.client_state if node.name == "client" else self._spec.server_state
