"""The controller over HTTP, as a client in any language has it."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lab.control.refusals import as_json
from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, UsageError
from lab.core.fault import Cut, Scope
from lab.core.flow import FourTuple
from lab.testbed.ports import PassingFlow
from lab.testcontainers.answers import FaultState, Verdict, passing_of

if TYPE_CHECKING:
    from requests import Response, Session

TIMEOUT_S = 30.0
"""For one answer; a verdict reads the captures."""

_BEATS = 3
"""Heartbeats within the time that the owner may be silent: one may be lost."""

_KINDS: Mapping[int, type[LabError]] = {401: EnvironmentNotReady, 503: InvalidRun}
"""What a status says of whose fault it is; the author's, where none is named."""

_SERVER_ERROR = 500
_REFUSED = 400


class ControlOverHttp:
    """Fulfils ``Control``.

    Args:
        url: As ``http://127.0.0.1:8474``.
        token: The controller's.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._session = self._open()

    def flows(self) -> Sequence[PassingFlow]:
        """The open flows, oldest first."""
        return [passing_of(one) for one in self._ask("GET", "/flows")["flows"]]

    def light(self) -> Sequence[PassingFlow]:
        """Those that are not cut."""
        return [passing_of(one) for one in self._ask("GET", "/flows")["flows"] if one["fault"] is None]

    def cut(self, flow: FourTuple, direction: Cut, scope: Scope, heal_after_s: float | None) -> FaultState:
        """Put a fault in force."""
        order = {
            "flow": as_json(flow),
            "direction": direction.value,
            "scope": scope.value,
            "heal_after_s": heal_after_s,
        }
        return FaultState.of(self._ask("POST", "/faults", order))

    def fault(self, name: str) -> FaultState:
        """A fault as it is now."""
        return FaultState.of(self._ask("GET", f"/faults/{name}"))

    def heal(self, name: str) -> FaultState:
        """Take it back."""
        return FaultState.of(self._ask("DELETE", f"/faults/{name}"))

    def heal_all(self) -> Sequence[FaultState]:
        """Take back all."""
        return [FaultState.of(one) for one in self._ask("DELETE", "/faults")["faults"]]

    def verdict(self, name: str) -> Verdict:
        """What the router proves of it."""
        return Verdict.of(self._ask("GET", f"/faults/{name}/verdict"))

    def capture(self, side: str) -> bytes:
        """What was captured on one side until now."""
        return self._answer("GET", f"/captures/{side}").content

    def health(self) -> Mapping[str, Any] | None:
        """How the controller is; None while nobody answers."""
        from requests.exceptions import RequestException

        try:
            found: Mapping[str, Any] = self._session.get(f"{self._url}/healthz", timeout=TIMEOUT_S).json()
        except (RequestException, ValueError):
            return None
        return found

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    @contextlib.contextmanager
    def beating(self, within_s: float) -> Iterator[None]:
        """Tell the controller that this process lives, often enough for its dead-man switch."""
        stop = threading.Event()
        thread = threading.Thread(target=self._beat, args=(stop, within_s / _BEATS), name="lab-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(TIMEOUT_S)

    def _beat(self, stop: threading.Event, pause_s: float) -> None:
        from requests.exceptions import RequestException

        # A session is one thread's.
        with self._open() as session:
            while not stop.is_set():
                # Where nobody answers, whoever asks for something is told.
                with contextlib.suppress(RequestException):
                    session.post(f"{self._url}/heartbeat", timeout=pause_s)
                stop.wait(pause_s)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._answer(method, path, body).json()

    def _answer(self, method: str, path: str, body: Any = None) -> "Response":
        from requests.exceptions import RequestException

        try:
            answer = self._session.request(method, f"{self._url}{path}", json=body, timeout=TIMEOUT_S)
        except RequestException as error:
            raise InvalidRun(
                f"The controller at {self._url} does not answer {method} {path}: {error}",
                fix="docker logs of its container says why",
            ) from error
        if answer.status_code >= _REFUSED:
            raise _refusal(answer)
        return answer

    def _open(self) -> "Session":
        import requests

        session = requests.Session()
        # A proxy of the environment is not asked for loopback.
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {self._token}"
        return session


def _refusal(answer: "Response") -> LabError:
    """The error of a problem document (RFC 9457)."""
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": answer.text}
    fallback = InvalidRun if answer.status_code >= _SERVER_ERROR else UsageError
    kind = _KINDS.get(answer.status_code, fallback)
    said = problem.get("detail") or problem.get("title") or f"status {answer.status_code}"
    return kind(f"The controller refused: {said}", fix=problem.get("fix"))
