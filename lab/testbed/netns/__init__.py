"""The embedded backend: three nodes in unnamed namespaces, no root needed, nothing left behind.

::

    caller ---- fork server ---- keeper ---- client agent ---- commands
    (any          (own user        (own PID    +- router agent ---- firewall, capture
    process)    and PID names)    and mounts)   +- server agent ---- commands

``testbed`` is what callers use; ``launcher`` and ``forkserver`` make testbeds; ``keeper``, ``mounts`` and ``links``
build one; ``services`` starts firewalls and captures. What acts inside a node is ``lab.testbed.agent``.
"""

from lab.testbed.netns.testbed import NetnsTestbed, open_testbed

__all__ = ["NetnsTestbed", "open_testbed"]
