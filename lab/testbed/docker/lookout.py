"""What others do to a testbed while it is in use, as the engine tells it.

A container that is paused, stopped or moved to another network makes a flow go silent as well. Nothing in the packets
tells such a silence from that of the hole, so a run asks here whether the hole was alone.
"""

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lab.testbed.docker import refusals
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import ROLE, TESTBED
from lab.testbed.docker.wire import Api, Refused
from lab.testbed.names import NODES

PROGRAM: Final = "program"
"""The role of a container of the user's image."""

_OF_NODES: Final = frozenset({"die", "kill", "oom", "pause", "restart", "stop", "unpause", "update"})
"""What nobody does to a node's container while it is in use."""

_OF_PROGRAMS: Final = frozenset({"kill", "oom", "pause", "restart", "stop", "unpause", "update"})
"""A program may end by itself; a signal is the lab's own, or somebody else's."""

_OF_NETWORKS: Final = frozenset({"connect", "disconnect"})


class Lookout:
    """Hears what becomes of one testbed's containers and networks; close it.

    Args:
        engine: Where.
        testbed: Its name, on the labels of its containers.
        holders: Ids of the nodes' containers.
        networks: Name of each network that is the testbed's alone, by its id.
    """

    def __init__(self, engine: Engine, testbed: str, holders: Iterable[str], networks: Mapping[str, str]) -> None:
        self._testbed = testbed
        self._holders = frozenset(holders)
        self._networks = dict(networks)
        self._own: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._heard: dict[tuple[object, ...], Mapping[str, Any]] = {}
        self._lost: str | None = None
        self._closed = False
        # On the engine's own clock, which is this machine's: the wall's.
        self._since = _now()
        self._api = Api(engine.socket_path, ".".join(map(str, engine.api_version)))
        with _engine_errors():
            self._events = self._api.events(since=self._since, filters=_filters())
        self._thread = threading.Thread(target=self._listen, name="lab-lookout", daemon=True)
        self._thread.start()

    def expect_signal(self, container: str) -> None:
        """The lab itself is about to send a signal to a program."""
        with self._lock:
            self._own[container] += 1

    def seen(self) -> tuple[str, ...]:
        """What others have done until now, a phrase each, in order.

        Raises:
            InvalidRun: the engine is gone.
        """
        with (
            _engine_errors(),
            contextlib.closing(
                # Those that the stream may not have brought yet; it alone has those that the engine has forgotten.
                self._api.events(since=self._since, until=_now(), filters=_filters())
            ) as last,
        ):
            for event in last:
                self._hear(event)
        with self._lock:
            own = Counter(self._own)
            heard = sorted(self._heard.values(), key=lambda event: int(event["timeNano"]))
            lost = self._lost
        phrases = [phrase for event in heard if (phrase := self._phrase(event, own))]
        return (*phrases, lost) if lost else tuple(phrases)

    def close(self) -> None:
        """Stop listening; idempotent."""
        self._closed = True
        self._events.hush()
        self._thread.join()
        self._events.close()

    def _listen(self) -> None:
        try:
            for event in self._events:
                self._hear(event)
            lost = "the engine ended its list of events: it was stopped or restarted"
        except (OSError, http.client.HTTPException, ValueError) as error:
            lost = f"the engine's events were lost ({type(error).__name__})"
        with self._lock:
            self._lost = None if self._closed else lost

    def _hear(self, event: Mapping[str, Any]) -> None:
        said = event["Actor"].get("Attributes") or {}
        with self._lock:
            if event["Type"] == "container" and said.get(TESTBED) != self._testbed:
                return
            self._heard[event["timeNano"], event["Action"], event["Actor"]["ID"]] = event

    def _phrase(self, event: Mapping[str, Any], own: "Counter[str]") -> str | None:
        """What an event says of this testbed; None where it says nothing of it, or is nobody's doing."""
        action, actor = event["Action"], event["Actor"]
        said = actor.get("Attributes") or {}
        if event["Type"] == "network":
            return self._of_network(action, actor["ID"], said)
        role = said.get(ROLE, "")
        if role == PROGRAM and action == "kill" and own[actor["ID"]] > 0:
            own[actor["ID"]] -= 1
            return None
        meddled = action in (_OF_NODES if role in NODES else _OF_PROGRAMS if role == PROGRAM else ())
        what = f"the {role}'s container" if role in NODES else f"the container of {said.get('image', 'a program')}"
        signal = f" (signal {said['signal']})" if action == "kill" and "signal" in said else ""
        return f"{action}{signal} of {what}" if meddled else None

    def _of_network(self, action: str, network: str, said: Mapping[str, str]) -> str | None:
        if action not in _OF_NETWORKS:
            return None
        if network in self._networks or said.get("container") in self._holders:
            return f"{action} of a container at network {said.get('name', network)}"
        return None


def _filters() -> dict[str, list[str]]:
    return {"type": ["container", "network"], "event": sorted(_OF_NODES | _OF_PROGRAMS | _OF_NETWORKS)}


def _now() -> str:
    return f"{time.time():.9f}"


@contextlib.contextmanager
def _engine_errors() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        raise refusals.explain(refused.message) from refused
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise refusals.lost(f"asked for its events, it gave no answer ({type(error).__name__})") from error
