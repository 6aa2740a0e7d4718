"""What an answer of the controller that is no good becomes."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, UsageError
from lab.testcontainers.http import ControlOverHttp

ANSWERS: dict[str, tuple[int, str]] = {
    "/faults/unknown": (404, '{"title": "T.", "status": 404, "detail": "No such fault.", "fix": "list them"}'),
    "/faults/early": (503, '{"title": "There is no capture.", "status": 503}'),
    "/faults/denied": (401, '{"title": "T.", "status": 401, "detail": "A token was expected."}'),
    "/faults/proxy": (502, "<html>Bad gateway</html>"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def control() -> Iterator[ControlOverHttp]:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        control = ControlOverHttp(f"http://127.0.0.1:{server.server_port}", "token")
        yield control
        control.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("unknown", UsageError, "No such fault. Fix: list them"),
        ("early", InvalidRun, "There is no capture."),
        ("denied", EnvironmentNotReady, "A token was expected."),
        ("proxy", InvalidRun, "Bad gateway"),
    ],
)
def test_whose_fault_a_refusal_is_goes_by_its_status(
    control: ControlOverHttp, name: str, kind: type[LabError], words: str
) -> None:
    with pytest.raises(LabError) as refused:
        control.fault(name)

    assert type(refused.value) is kind
    assert words in str(refused.value)


def test_a_proxy_of_the_environment_is_not_asked(control: ControlOverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(UsageError):
        control.fault("unknown")


def test_no_answer_is_no_health() -> None:
    control = ControlOverHttp("http://127.0.0.1:9", "token")

    assert control.health() is None
    with pytest.raises(InvalidRun, match="does not answer GET /flows"):
        control.flows()
    control.close()
