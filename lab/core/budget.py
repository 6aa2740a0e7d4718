"""How much all flows of one capture may remember together, so that no capture can exhaust the memory."""

from dataclasses import dataclass

_SENDINGS = 400_000
_SENDINGS_AT_MOST = 4096
_SENDINGS_AT_LEAST = 32


@dataclass(slots=True)
class Budget:
    """What is left; shared by the flows, and drawn from as they remember."""

    copies: int = 50_000
    """Copies and probes that are listed; beyond it they are counted only. At 0.7 kB each, 35 MB."""

    episodes: int = 20_000
    """Series of copies; those that last to the end of the capture are always remembered."""

    sendings: int = _SENDINGS_AT_MOST
    """First sendings that each side of a flow may remember. At 1448 octets each, 4096 are 6 MB in flight."""

    def share(self, flows: int) -> None:
        """Share the memory for sendings among this many flows: about 200 MB in all."""
        self.sendings = max(_SENDINGS_AT_LEAST, min(_SENDINGS_AT_MOST, _SENDINGS // flows))
