"""Who may ask."""

import base64

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lab.control.gate import BODY_BYTES, Gate
from lab.control.problems import MEDIA_TYPE
from tests.control.asking import Answer, Asking

TOKEN = "correct-horse"
BEARER = {"authorization": f"Bearer {TOKEN}"}


async def _echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())}")


APP = Starlette(routes=[Route("/{path:path}", _echo, methods=["GET", "POST", "DELETE"])])


def ask(
    path: str = "/faults",
    *,
    method: str = "POST",
    token: str | None = TOKEN,
    host: str = "localhost",
    content: bytes = b"",
    **headers: str,
) -> Answer:
    client = Asking(Gate(APP, token, ["lab.example"]))
    named = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return client.request(method, path, headers=named, content=content)


def kind(answer: Answer) -> str:
    assert answer.headers["content-type"] == MEDIA_TYPE
    return str(answer.json()["type"]).partition("#")[2]


def test_the_token_opens() -> None:
    assert ask(authorization=f"Bearer {TOKEN}").status_code == 200
    assert ask(authorization=f"bearer  {TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer correct-hors", "Bearer correct-horse1", "Token x", TOKEN, "Bearer é"],
)
def test_no_token_or_a_wrong_one_is_401_and_says_how(authorization: str) -> None:
    answer = ask(authorization=authorization)

    assert (answer.status_code, kind(answer)) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == 'Bearer realm="blackhole-lab"'
    assert "LAB_TOKEN" in answer.json()["fix"]
    assert TOKEN not in answer.text


def test_health_takes_no_token() -> None:
    assert ask("/healthz", method="GET").status_code == 200
    assert ask("/healthz/", method="GET").status_code == 401
    assert ask("//healthz", method="GET").status_code == 401


def test_a_browser_may_read_the_page_with_the_token_as_password_and_nothing_else() -> None:
    basic = "Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()).decode()

    assert ask("/docs", method="GET").headers["www-authenticate"].startswith("Basic")
    assert ask("/docs", method="GET", authorization=basic).status_code == 200
    assert ask("/faults", authorization=basic).status_code == 401
    for wrong in ("Basic !", "Basic " + base64.b64encode(b"anybody:x").decode(), "Basic " + "é"):
        assert ask("/docs", method="GET", authorization=wrong).status_code == 401


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8474", "localhost.", "127.0.0.1:8474", "[::1]:8474", "[::1]", "router:8474", "lab.example",
     "192.0.2.1"],
)  # fmt: skip
def test_the_controllers_own_names_and_addresses_are_fine(host: str) -> None:
    assert ask(host=host, authorization=f"Bearer {TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8474", "", "[evil]", "127.0.0.1.evil.example"]
)
def test_a_name_that_was_made_to_resolve_to_this_host_is_421_whatever_it_brings(host: str) -> None:
    answer = ask(host=host, authorization=f"Bearer {TOKEN}")

    assert (answer.status_code, kind(answer)) == (421, "unknown-host")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost:1", "http://localhost.evil.example"]
)
def test_a_web_page_of_another_origin_is_403_whatever_it_brings(origin: str) -> None:
    answer = ask(host="localhost:8474", origin=origin, authorization=f"Bearer {TOKEN}")

    assert (answer.status_code, kind(answer)) == (403, "foreign-origin")


def test_a_web_page_of_this_origin_is_fine() -> None:
    assert (
        ask(host="localhost:8474", origin="http://localhost:8474", authorization=f"Bearer {TOKEN}").status_code == 200
    )


def test_on_a_unix_socket_the_file_is_the_gate() -> None:
    assert ask(token=None, host="lab").status_code == 200


@pytest.mark.parametrize("token", [TOKEN, None])
def test_a_large_body_is_413_and_one_of_the_limit_passes(token: str | None) -> None:
    large = ask(token=token, content=bytes(BODY_BYTES + 1), authorization=f"Bearer {TOKEN}")

    assert (large.status_code, kind(large)) == (413, "too-large")
    assert ask(token=token, content=bytes(BODY_BYTES), authorization=f"Bearer {TOKEN}").text == str(BODY_BYTES)


def test_a_body_that_does_not_say_how_large_it_is_is_counted() -> None:
    client = Asking(Gate(APP, None))
    answer = client.post("/faults", content=[bytes(1000)] * 100)

    assert (answer.status_code, kind(answer)) == (413, "too-large")
