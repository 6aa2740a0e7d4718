"""The tables of hosts that ``lab live lifecycle`` prints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.cli.grid import Grid
from lab.host.machine.variant import VARIANTS
from lab.host.tables.without_session import ASKS

if TYPE_CHECKING:
    from lab.host.tables import Row

REQUESTS = frozenset(type(ask).__name__ for ask in ASKS)

CARRIERS = {"websocket": "ws"}
"""What a column has room for."""


def grid(rows: Sequence["Row"]) -> Grid:
    """Each case with its variants; one line for both carriers, and for all requests that fare alike."""
    shown = Grid("variant", "over", "seen", "after", whole=("variant", "after"))
    alike: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((_kind(row.case), row.variant, row.seen), []).append(row)
    by_case: dict[str, list[list[Row]]] = {}
    for (kind, _, _), found in alike.items():
        cases = list(dict.fromkeys(row.case for row in found))
        by_case.setdefault(cases[0] if len(cases) == 1 else f"{len(cases)} requests {kind}", []).append(found)
    for case, lines in by_case.items():
        shown.group(case)
        for found in lines:
            times = [row.after_s for row in found if row.after_s is not None]
            after = f"{max(times):.2f} s" if times else ""
            carriers = list(dict.fromkeys(row.transport for row in found))
            over = "both" if len(carriers) > 1 else CARRIERS.get(carriers[0], carriers[0])
            variant = VARIANTS.get(found[0].variant)
            label = variant.label if variant is not None else ""
            shown.add(label or found[0].variant, over, found[0].seen, after, ok=all(row.right for row in found))
    return shown


def _kind(case: str) -> str:
    """What a case is about; of one that each request has, without the request."""
    request, _, rest = case.partition(" ")
    return rest if request in REQUESTS else case
