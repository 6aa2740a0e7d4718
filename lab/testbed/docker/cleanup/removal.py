"""Finds and removes what carries given labels on an engine: containers, networks and volumes."""

import enum
import http
import http.client
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lab.testbed.docker.labels import ROLE, Owner, of_owner, owner_of
from lab.testbed.docker.sidecar.parting import ATTACH, NotRestored, part
from lab.testbed.docker.wire import Api, Refused

AT_ONCE = 8
"""Removals in parallel; the engine takes turns at most of what they do."""

SETTLE_S = 2.0
"""How long nothing must be left: a request of a dead owner may still be under way in the engine, and is not listed."""

SLOWNESS = 5
"""A settle time is at least this many times the slowest answer: where those are slow, so is what is under way."""

LONGEST_SETTLE_S = 4.0
"""However slow it is: the rest of the time is for removing."""

PAUSE_S = 0.1
"""Between two looks."""

LONGEST_S = 120.0
"""After which a clean-up gives up: an engine that is being restarted comes back sooner."""


class Kind(enum.Enum):
    """What an engine holds, in the order in which it can be removed."""

    CONTAINER = "container"
    NETWORK = "network"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing on an engine."""

    kind: Kind

    id: str

    name: str

    owner: Owner | None
    """None where its labels do not say."""

    labels: dict[str, str] = field(repr=False)


def find(api: Api, wanted: Sequence[str]) -> list[Thing]:
    """Everything that carries labels.

    Args:
        api: Where.
        wanted: For the engine's ``label`` filter.

    Raises:
        Refused: the engine does not want to say.
        OSError: it does not answer.
    """
    filters = {"label": list(wanted)}
    containers = api.get("containers", "json", all=1, filters=filters)
    networks = api.get("networks", filters=filters)
    volumes = api.get("volumes", filters=filters)["Volumes"] or []
    return [
        *(
            _thing(Kind.CONTAINER, one["Id"], (one["Names"] or [one["Id"]])[0].lstrip("/"), one["Labels"])
            for one in containers
        ),
        *(_thing(Kind.NETWORK, one["Id"], one["Name"], one["Labels"]) for one in networks),
        *(_thing(Kind.VOLUME, one["Name"], one["Name"], one["Labels"]) for one in volumes),
    ]


def remove(api: Api, things: Iterable[Thing]) -> list[Thing]:
    """Remove what can be removed now.

    Returns:
        What is gone by this call's doing; the rest went by itself, or is busy still.
    """
    found = list(things)
    gone: list[Thing] = []
    with ThreadPoolExecutor(AT_ONCE) as workers:
        for kind in Kind:
            some = [thing for thing in found if thing.kind is kind]
            # A network cannot go before the containers on it.
            done = workers.map(lambda thing: _remove(api, thing), some)
            gone += [thing for thing, removed in zip(some, done, strict=True) if removed]
    return gone


def remove_all_of(
    api: Api,
    owner: Owner,
    spare: str | None = None,
    *,
    settle_s: float = SETTLE_S,
    longest_s: float = LONGEST_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Remove everything of one owner, until nothing has appeared for a settle time.

    Args:
        api: Where.
        owner: Who has ended.
        spare: Name of the container that this is done in.
        settle_s: The settle time, at least.
        longest_s: When to give up.
        clock: Monotonic seconds.
        sleep: Waits.

    Returns:
        Whether nothing is left.
    """
    began = clock()
    empty_since: float | None = None
    while clock() - began < longest_s:
        asked = clock()
        try:
            left = [thing for thing in find(api, of_owner(owner)) if thing.name != spare]
            answered = clock()
            remove(api, left)
        except (Refused, OSError, http.client.HTTPException):
            # It is being restarted, or answers later.
            empty_since = None
        else:
            empty_since = None if left else empty_since or asked
            settle_s = max(settle_s, min(SLOWNESS * (answered - asked), LONGEST_SETTLE_S))
        if empty_since is not None and clock() - empty_since >= settle_s:
            return True
        sleep(PAUSE_S)
    return False


def _thing(kind: Kind, id_: str, name: str, labels: dict[str, str] | None) -> Thing:
    return Thing(kind, id_, name, owner_of(labels), labels or {})


def _remove(api: Api, thing: Thing) -> bool:
    """Whether it is gone by this call's doing."""
    try:
        if thing.labels.get(ROLE) == ATTACH:
            # What it has joined is not the lab's to remove, but to restore.
            part(api, thing.id, thing.labels)
        elif thing.kind is Kind.CONTAINER:
            api.delete("containers", thing.id, force=1, v=1)
        elif thing.kind is Kind.NETWORK:
            _remove_network(api, thing.id)
        else:
            api.delete("volumes", thing.id, force=1)
    except (Refused, NotRestored, OSError, http.client.HTTPException):
        # Gone, being removed by another, busy, or out of reach: whoever asked looks again.
        return False
    return True


def _remove_network(api: Api, id_: str) -> None:
    try:
        api.delete("networks", id_)
    except Refused as refused:
        if refused.status == http.HTTPStatus.NOT_FOUND:
            raise
        # Somebody's container was attached to it, or one of the lab's is still going.
        for container in api.get("networks", id_).get("Containers") or {}:
            api.post("networks", id_, "disconnect", body={"Container": container, "Force": True})
        api.delete("networks", id_)
