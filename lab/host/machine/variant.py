"""Which of the published repairs a host has: the repaired one, the released one, and each defect alone."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Variant:
    """A host with some of the repairs; the numbers are those of the published description (L1 to L7)."""

    name: str
    """What ``--variant`` and the JSON of tables call it."""

    tells_closed: bool = True
    """L1: the end of a session is an event."""

    detaches_closed: bool = True
    """L2: a session that closed is not asked any more."""

    answers_without_session: bool = True
    """L3: a request that nobody can answer is answered with an error."""

    answers_finalize: bool = True
    """L4: the end of a simulation needs the job alone."""

    serves_simulator: bool = True
    """L5: a shutdown under a simulation waits for the simulator."""

    defers_deletion: bool = True
    """L6: under a simulation the room is deleted after the verdict."""

    counts_undeliverable: bool = True
    """L7: a verdict that cannot be delivered ends the wait."""

    label: str = field(default="", kw_only=True)
    """What printed tables call it, where its name says too little beside sessions that are released."""


REPAIRED = Variant("repaired")

RELEASED = Variant("released", *[False] * 6, label="livekit-agents 1.8.9")
"""As livekit-agents 1.8.9 was seen to behave (L1 to L4), and as the description has it (L5, L6); without L5 nobody
waits for a verdict, so that L7 has no defect there."""

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        variant.name: variant
        for variant in (
            REPAIRED,
            RELEASED,
            Variant("no session_closed", tells_closed=False),
            Variant("closed session kept", detaches_closed=False),
            Variant("requests dropped", answers_without_session=False),
            Variant("finalize dropped", answers_finalize=False),
            Variant("shutdown at once", serves_simulator=False),
            Variant("room deleted at once", defers_deletion=False),
            Variant("lost verdict waited for", counts_undeliverable=False),
        )
    }
)
"""By name: the repaired and the released one, and the repaired one with one defect each."""


def defects(variant: Variant) -> tuple[str, ...]:
    """The repairs that a variant lacks."""
    return tuple(field.name for field in dataclasses.fields(variant) if getattr(variant, field.name) is False)
