"""A packet-loss lab: cut one established TCP flow silently and measure who notices, when.

The rings, dependencies pointing inwards::

    cli, experiments  ->  run  ->  testbed, pcap, report  ->  core

``core``
    pure: segments, classification, the kernel's give-up model, verdicts. No clock, no files, no sockets.
``pcap``
    reads and writes capture files; turns bytes into the core's ``Segment``.
``testbed``
    client, router and server nodes, the controller that cuts, the capture, the sockets' samples.
``report``
    the record of a run, its tables and figures.
``run``
    one run from specification to verdict: arrange, predict, cut, observe, compare.
``experiments``
    what ``pytest lab/`` runs, one question per file.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.api import blackhole

__all__ = ["__version__", "blackhole"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Imported at its first use (PEP 562): ``lab --help`` must not pay for it.
    if name == "blackhole":
        from lab.api import blackhole

        return blackhole
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
