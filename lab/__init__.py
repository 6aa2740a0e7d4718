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

__version__ = "0.1.0"
