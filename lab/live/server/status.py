"""The status port: what the sessions are, and the few things that a test may ask of a server.

::

    GET  /healthz          "ok"
    GET  /status           sessions, locks, calls, bookings, counts against the limit, how late the loop is
    POST /lapse            {"since": CLOCK_MONOTONIC seconds or null for now, "factor": 30}
    POST /close            {"session": "session-1", "code": 1011, "reason": "..."}, or {"session": ..., "dismiss": true}

It runs in threads of its own, and asks the event loop for everything: a slow reader of a status keeps nobody waiting.
"""

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab.live.protocol.closing import INTERNAL_ERROR, Closing
from lab.live.server.door import Door, listen
from lab.live.server.shell import Shell
from lab.live.timelapse import Lapse

MOST_BODY = 64 * 2**10
ANSWER_S = 10.0
"""How long a request waits for the event loop."""

Answer = tuple[HTTPStatus, dict[str, Any]]


class StatusPort:
    """Serves the status of a shell.

    Args:
        shell: Whose.
        report: All of ``GET /status``; called in the event loop.
        host: Address to listen on, None for all.
        port: 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, shell: Shell, report: Callable[[], dict[str, Any]], host: str | None, port: int) -> None:
        self._shell = shell
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._server = _Server(listen(host, port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="status", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def get(self, path: str) -> Answer:
        """Answer a GET; in a thread of the port."""
        if path == "/status":
            return HTTPStatus.OK, self._in_loop(self._report)
        if path == "/healthz":
            return HTTPStatus.OK, self._in_loop(lambda: {"ok": True})
        return HTTPStatus.NOT_FOUND, {"error": f"there is no {path}"}

    def post(self, path: str, body: Any) -> Answer:
        """Answer a POST; in a thread of the port."""
        act = {"/lapse": self._lapse, "/close": self._close}.get(path)
        if act is None:
            return HTTPStatus.NOT_FOUND, {"error": f"there is no {path}"}
        if not isinstance(body, dict):
            return HTTPStatus.BAD_REQUEST, {"error": "a JSON object is wanted"}
        try:
            return HTTPStatus.OK, self._in_loop(lambda: act(body))
        except KeyError as error:
            return HTTPStatus.NOT_FOUND, {"error": f"there is no session {error}"}
        except (ValueError, TypeError) as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}

    def _lapse(self, body: dict[str, Any]) -> dict[str, Any]:
        since = body.get("since")
        self._shell.lapse(Lapse(time.monotonic() if since is None else _number(since), _number(body.get("factor"))))
        return {"now": self._shell.clock.now(), "factor": self._shell.clock.factor}

    def _close(self, body: dict[str, Any]) -> dict[str, Any]:
        session = str(body.get("session"))
        if body.get("dismiss") is True:
            self._shell.dismiss(session)
        else:
            code, reason = body.get("code", INTERNAL_ERROR.code), body.get("reason", INTERNAL_ERROR.reason)
            if code not in (1000, 1001, 1007, 1008, 1011) or not isinstance(reason, str):
                raise ValueError("code is 1000, 1001, 1007, 1008 or 1011, and reason is text")
            self._shell.close(session, Closing(code, reason, "asked for at the status port"))
        return {"session": session}

    def _in_loop(self, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(ANSWER_S)


class _Server(ThreadingHTTPServer):
    """On a door of the lab's: of both families, and with few half-open requests."""

    daemon_threads = True

    def __init__(self, door: Door, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        door.setblocking(True)
        self.socket = door
        self.server_address = door.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in mid-request is no news."""


def _handler(port: StatusPort) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5.0  # for a request to arrive

        def do_GET(self) -> None:
            self._answer(lambda: port.get(self.path.partition("?")[0]))

        def do_POST(self) -> None:
            self._answer(lambda: port.post(self.path.partition("?")[0], self._body()))

        def _body(self) -> Any:
            length = int(self.headers.get("content-length") or 0)
            if not 0 <= length <= MOST_BODY:
                raise ValueError("the body is too long")
            return json.loads(self.rfile.read(length))

        def _answer(self, act: Callable[[], Answer]) -> None:
            status, content = HTTPStatus.FORBIDDEN, {"error": "web pages are not answered"}
            if self.headers.get("origin") is None:
                try:
                    status, content = act()
                except (ValueError, RecursionError):
                    status, content = HTTPStatus.BAD_REQUEST, {"error": "a JSON object is wanted"}
                except TimeoutError:
                    status, content = HTTPStatus.SERVICE_UNAVAILABLE, {"error": "the event loop does not answer"}
            octets = json.dumps(content, default=dict).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(octets)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(octets)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Say nothing: standard error is for people."""

    return Handler


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("since and factor are numbers of seconds and session seconds per second")
    return float(value)
