"""The container backend: three nodes in containers on two bridge networks.

::

    holder "client" ---- left ---- holder "router" ---- right ---- holder "server"
      agent                          agent                           agent
      the user's container           firewall, capture               the user's container
         |                              |                               |
         +---- Unix sockets in a folder that the caller shares with every holder

A node is a pod: its *holder*, a container of the lab's own image, owns the network namespace; what the user brings
joins it, unmodified and without a capability. So a namespace outlives the programs in it, and the sockets that they
left behind end by their own rules.

``testbed`` and ``nodes`` are what callers use. ``engine``, ``wire``, ``refusals`` and ``labels`` speak with the engine;
``networks``, ``outside``, ``pod``, ``settings`` and ``reception`` bring a testbed up; ``program`` runs the user's
container and ``inspector`` looks into it; ``lookout`` hears what others do to it; ``readiness`` is for ``lab doctor``.
Below: ``images`` (what containers are made from), ``inner`` (what runs in the lab's own), ``cleanup`` (the reaper and
``lab clean``), ``sidecar`` (``lab attach``).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.testbed.docker.testbed import DockerTestbed, Images, open_testbed

__all__ = ["DockerTestbed", "Images", "open_testbed"]


def __getattr__(name: str) -> object:
    # Imported at its first use (PEP 562): what runs inside a container must not pay for the caller's part.
    if name in __all__:
        from lab.testbed.docker import testbed

        return getattr(testbed, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
