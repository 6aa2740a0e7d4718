"""For people's own tests, with Testcontainers: a router between two containers that can cut one of their flows.

::

    with Testbed(client=DockerContainer("my-client"), server=DockerContainer("my-server")) as testbed:
        cut = testbed.cut(port=8080)                 both ways dark, nothing closed
        assert testbed.wait_until_gone(cut) < 60     until the client's kernel gave up
        assert cut.verdict().confirmed

``Testbed`` brings the networks and the router. ``Router`` is a container for networks of one's own, driven over HTTP as
any language could. docs/testcontainers.md has all of it.
"""

from lab.testcontainers.answers import FaultState, Verdict, Way
from lab.testcontainers.bridges import routed_network
from lab.testcontainers.control import CutFlow
from lab.testcontainers.router import Router
from lab.testcontainers.testbed import Testbed
from lab.testcontainers.waiting import ControllerWaitStrategy, ListeningWaitStrategy

__all__ = [
    "ControllerWaitStrategy",
    "CutFlow",
    "FaultState",
    "ListeningWaitStrategy",
    "Router",
    "Testbed",
    "Verdict",
    "Way",
    "routed_network",
]
