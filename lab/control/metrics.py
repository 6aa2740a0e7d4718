"""The controller's figures in Prometheus' text format."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from lab.control.controller import Controller
from lab.core.errors import LabError

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_KERNEL = {
    "IpForwDatagrams": "IPv4 packets that the router forwarded.",
    "IpInDiscards": "IPv4 packets that came in and were thrown away.",
    "IpOutDiscards": "IPv4 packets that could not be sent.",
    "IpOutNoRoutes": "IPv4 packets without a route.",
    "Ip6OutForwDatagrams": "IPv6 packets that the router forwarded.",
    "Ip6InDiscards": "IPv6 packets that came in and were thrown away.",
    "Ip6OutDiscards": "IPv6 packets that could not be sent.",
    "Ip6OutNoRoutes": "IPv6 packets without a route.",
    "IcmpOutDestUnreachs": "ICMP destination unreachable that the router sent: each may have told a sender.",
    "Icmp6OutDestUnreachs": "The same of ICMPv6.",
}
"""Kernel counters of the router that a hole could be mistaken for."""


def exposition(controller: Controller) -> bytes:
    """The figures as of now."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(controller))
    return generate_latest(registry)


class _Figures:
    """Read from the controller when they are asked for."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def collect(self) -> Iterator[Metric]:
        counts, health = self._controller.counts, self._controller.health
        yield CounterMetricFamily("lab_cuts", "Faults put in force.", counts["cuts"])
        yield CounterMetricFamily("lab_heals", "Faults taken back.", counts["heals"])
        yield GaugeMetricFamily("lab_faults_in_force", "Faults in force.", health["in_force"])
        yield from self._matched()
        up = CounterMetricFamily("lab_heartbeats_lost", "Times that the dead-man switch healed.", counts["lost"])
        yield up
        yield GaugeMetricFamily("lab_flows", "Open flows that pass.", len(self._controller.flows()))
        yield GaugeMetricFamily("lab_start_time_seconds", "Unix time of the start.", self._controller.started_at)
        yield from self._captured()
        kernel = self._controller.router.counters()
        for name, text in _KERNEL.items():
            if name in kernel:
                yield CounterMetricFamily(f"lab_router_{name}", text, kernel[name])

    def _matched(self) -> Iterator[Metric]:
        total = self._controller.matched_total()
        matched = CounterMetricFamily("lab_matched_packets", "Packets that faults dropped.", labels=["direction"])
        matched.add_metric(["forward"], total.forward)
        matched.add_metric(["return"], total.return_)
        yield matched

    def _captured(self) -> Iterator[Metric]:
        try:
            summary = self._controller.recording.summary()
        except LabError:
            yield GaugeMetricFamily("lab_capture_running", "Whether both sides are captured.", 0)
            return
        yield GaugeMetricFamily("lab_capture_running", "Whether both sides are captured.", 1)
        packets = CounterMetricFamily("lab_captured_packets", "Packets written.", labels=["side"])
        dropped = CounterMetricFamily(
            "lab_capture_dropped_packets", "Packets lost for want of buffer.", labels=["side"]
        )
        for side, count in summary.packets.items():
            packets.add_metric([side], count)
            dropped.add_metric([side], summary.dropped[side])
        yield packets
        yield dropped
