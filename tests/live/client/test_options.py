from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.live.client import steps
from lab.live.client.backend import Fault
from lab.live.client.options import endpoint, parse


def test_without_options_it_is_the_studys_client() -> None:
    options = parse([])

    assert (options.url, options.adapter, options.commit_after_s) == ("ws://server:8765", "wire", 4.0)
    assert options.policy.window_s == 4.0
    assert options.fault is Fault.NONE


def test_a_script_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('[{"do": "say", "clip": "book"}]', encoding="utf-8")

    assert parse(["--script", f"@{file}"]).script.steps == (steps.Say("book"),)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://server:8765", "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"),
        ("ws://server:8765/", "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"),
        ("ws://server:8765/own/path", "/own/path"),
    ],
)
def test_an_address_without_a_path_gets_the_developer_endpoints(url: str, expected: str) -> None:
    assert endpoint(url) == f"ws://server:8765{expected}"


def test_a_base_url_of_http_is_dialled_as_websocket() -> None:
    assert endpoint("https://h:1/p") == "wss://h:1/p"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--url", "server:8765"], "--url is a URL"),
        (["--url", "ws://"], "--url is a URL"),
        (["--url", "ws://h:99999"], "--url is a URL"),
        (["--status", "ws://h:1"], "--status is a URL"),
        (["--policy", "[]"], "--policy is a JSON object"),
        (["--policy", "{"], "--policy is no JSON"),
        (["--policy", '{"speed": 1}'], "A policy has no 'speed'"),
        (["--script", "@/nowhere"], "--script: /nowhere cannot be read"),
        (["--commit-after", "-1"], "--commit-after is a duration"),
        (["--commit-after", "inf"], "--commit-after is a duration"),
        (["--ca", "/nowhere"], "--ca: there is no file"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_option(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(argv)

    assert raised.value.message.startswith(message)
